package web

import (
	"net/http"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/runner"
)

// perQueuePage is the number of queues in the table of the overview.
const perQueuePage = 100

// queuePage is the part of the queues that the overview lists.
type queuePage struct {
	shown     []runner.Queue
	AllQueues int    // number of queues that match QueueText
	PerPage   int    // AllQueues is greater if the table has more than one page
	Ask       bool   // whether the page has a field for QueueText
	QueueText string // part of the names of the listed queues; empty for all queues
	Range     string // chosen range of the chart
	NextPage  string // URL of the following part; empty on the last one
	FirstPage string // URL of the first part; empty on the first one
}

// newQueuePage reads the part of the queues from the URL: queue=TEXT lists
// queues whose names contain the text, and from=NAME begins after a queue.
func newQueuePage(p page, req *http.Request, all []runner.Queue) queuePage {
	v := queuePage{PerPage: perQueuePage, QueueText: humanize.Safe(req.FormValue("queue")), Range: req.FormValue("range")}
	v.Ask = len(all) > perQueuePage || v.QueueText != ""
	list := slices.DeleteFunc(slices.Clone(all), func(q runner.Queue) bool { return !strings.Contains(q.Queue, v.QueueText) })
	v.AllQueues = len(list)

	first := p.Base + "/?queue=" + escaped(v.QueueText)
	if v.Range != "" {
		first += "&range=" + escaped(v.Range)
	}
	if from := req.FormValue("from"); from != "" {
		list = slices.DeleteFunc(list, func(q runner.Queue) bool { return q.Queue <= from })
		v.FirstPage = first
	}
	if len(list) > perQueuePage {
		list = list[:perQueuePage]
		v.NextPage = first + "&from=" + escaped(list[perQueuePage-1].Queue)
	}
	v.shown = list
	return v
}
