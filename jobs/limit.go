package jobs

import (
	"time"
)

// Target is the queue, job or lane that a limit applies to.
type Target struct {
	Kind string // queue, job or lane
	Name string
}

// The kinds of targets.
const (
	QueueTarget = "queue"
	JobTarget   = "job"
	LaneTarget  = "lane"
)

// String returns the form that ParseTarget parses, such as queue:media.
func (t Target) String() string { return t.Kind + ":" + t.Name }

// Limit sets how many tasks of a target may run at the same time, and how often they may start. It holds for all workers together. At least
// one of the two is set.
type Limit struct {
	Target
	Running int           // tasks that may run at the same time; 0 for no limit. Not for lanes, which run one task at a time
	Rate    int           // starts per Per; 0 for no limit
	Per     time.Duration // in whole milliseconds
	Burst   int           // greatest number of starts at once, after a time without starts
}
