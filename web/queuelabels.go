package web

import (
	"slices"

	"example.com/runner/internal/admin"
	"example.com/runner/jobs"
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

// queues adds up the queues that have the same label.
func (l queueLabels) queues(list []runner.Queue) []runner.Queue {
	if l == nil {
		return list
	}
	var own []runner.Queue
	other := runner.Queue{Queue: otherQueues, Counts: map[jobs.State]int{}}
	for _, q := range list {
		if l.of(q.Queue) == q.Queue {
			own = append(own, q)
			continue
		}
		for state, n := range q.Counts {
			other.Counts[state] += n
		}
		if other.Oldest.IsZero() || !q.Oldest.IsZero() && q.Oldest.Before(other.Oldest) {
			other.Oldest = q.Oldest
		}
	}
	return append(own, other)
}

// totals adds up the totals whose queues have the same label.
func (l queueLabels) totals(list []admin.Total) []admin.Total {
	if l == nil {
		return list
	}
	var sums []admin.Total
	at := map[admin.Total]int{}
	for _, t := range list {
		key := admin.Total{Queue: l.of(t.Queue), Job: t.Job, Result: t.Result}
		if i, ok := at[key]; ok {
			sums[i].N += t.N
			continue
		}
		at[key], t.Queue = len(sums), key.Queue
		sums = append(sums, t)
	}
	return sums
}

// merged adds up the values whose keys get the same label.
func merged[K comparable, V any](all map[K]*V, label func(K) K, add func(sum, v *V)) map[K]*V {
	sums := map[K]*V{}
	for key, v := range all {
		key = label(key)
		if sums[key] == nil {
			sums[key] = new(V)
		}
		add(sums[key], v)
	}
	return sums
}
