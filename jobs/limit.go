package jobs

import (
	"time"
)

// Target is the queue, job or lane that a limit applies to, or the whole
// database.
type Target struct {
	Kind string // queue, job, lane or all
	Name string // empty for the kind all
}

// The kinds of targets.
const (
	QueueTarget = "queue"
	JobTarget   = "job"
	LaneTarget  = "lane"
	AllTarget   = "all" // the whole database: all tasks
)

// String returns the form that the command line uses: queue:media, or all.
func (t Target) String() string {
	if t.Kind == AllTarget {
		return t.Kind
	}
	return t.Kind + ":" + t.Name
}

// Limit sets how many tasks of a target may run at the same time, and how often
// they may start. It holds for all workers together. Running or Rate must be
// set, or both.
//
// The rate is a token bucket: after a time without starts, Burst tasks may
// start at once, and then one task in each period of Per/Rate. So up to
// Rate+Burst tasks may start within one Per. With a Burst of 1 the starts have
// equal intervals. A call of a batch function (see Func.BulkHandler) counts as
// one start, however many tasks it has.
type Limit struct {
	Target
	// Running is the number of tasks that may run at the same time; 0 for no
	// limit. For a lane it is the number of tasks that may hold the lane at the
	// same time; 0 means one.
	Running int
	Rate    int           // number of starts in a period of length Per; 0 for no limit
	Per     time.Duration // length of the period for Rate, in whole milliseconds
	Burst   int           // maximum number of starts at once, after a time without starts; 0 means Rate
}
