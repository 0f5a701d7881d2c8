package web

import (
	"slices"

	"example.com/runner/internal/admin"
	"example.com/runner/runner"
)

// maxQueueLabels is the number of queues with series of their own in a scrape.
// Ten thousand queues would be a hundred thousand series.
const maxQueueLabels = 1000

// otherQueues is the label of all other queues together. It is no valid name.
const otherQueues = "(other)"

// queueLabels contains the queues with series of their own: the first
// maxQueueLabels by name, so that they rarely change. It is nil if all queues
// have series of their own.
type queueLabels map[string]bool

func newQueueLabels(queues []runner.Queue, totals []admin.Total) queueLabels {
	var names []string
	for _, q := range queues {
		names = append(names, q.Queue)
	}
	for _, t := range totals {
		names = append(names, t.Queue)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) <= maxQueueLabels {
		return nil
	}

	l := queueLabels{}
	for _, name := range names[:maxQueueLabels] {
		l[name] = true
	}
	return l
}

// of returns the label of a queue.
func (l queueLabels) of(queue string) string {
	if l == nil || l[queue] {
		return queue
	}
	return otherQueues
}
