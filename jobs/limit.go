package jobs

import (
	"errors"
	"math"
	"strings"
	"time"
)

// Target is what a limit applies to: a queue, a job or a lane.
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

// ParseTarget parses queue:NAME, job:NAME or lane:KEY.
func ParseTarget(text string) (Target, error) {
	kind, name, found := strings.Cut(text, ":")
	if !found {
		return Target{}, invalid("target", "invalid target %q; use queue:NAME, job:NAME or lane:KEY", text)
	}
	t := Target{Kind: kind, Name: name}
	return t, t.Validate()
}

// Validate returns a *FieldError of the field "target" if the target is invalid.
func (t Target) Validate() error {
	var err error
	switch t.Kind {
	case QueueTarget:
		err = ValidQueue(t.Name)
	case JobTarget:
		err = ValidJob(t.Name)
	case LaneTarget:
		if t.Name == "" {
			return invalid("target", "lane: needs a key")
		}
		err = validKey("lane", t.Name)
	default:
		return invalid("target", "invalid target %q; use queue:NAME, job:NAME or lane:KEY", t.String())
	}
	if field, ok := errors.AsType[*FieldError](err); ok {
		return invalid("target", "%s", field.Msg)
	}
	return err
}

// Limit sets how many tasks of a target may run at the same time, and how often they may start, over all workers. At least one of
// the two is set.
type Limit struct {
	Target
	Running int           // tasks that may run at the same time; 0 for no limit. Not for lanes, which run one task at a time
	Rate    int           // starts per Per; 0 for no limit
	Per     time.Duration // in whole milliseconds
	Burst   int           // starts at once after a time without any
}

// Bounds of a Limit's fields.
const (
	maxRate = 1_000_000
	minPer  = time.Millisecond
)

// Validate returns the first error in the limit, as a *FieldError.
func (l Limit) Validate() error {
	if err := l.Target.Validate(); err != nil {
		return err
	}
	switch {
	case l.Running < 0 || l.Running > math.MaxInt32:
		return invalid("running", "%d is out of range (1 or more)", l.Running)
	case l.Running > 0 && l.Kind == LaneTarget:
		return invalid("running", "a lane runs one task at a time")
	case l.Running == 0 && l.Rate == 0:
		return invalid("rate", "a limit needs running or rate")
	case l.Rate < 0 || l.Rate > maxRate:
		return invalid("rate", "%d is out of range (1 to %d)", l.Rate, maxRate)
	case l.Rate == 0 && (l.Per != 0 || l.Burst != 0):
		return invalid("burst", "needs rate")
	case l.Rate > 0 && (l.Per < minPer || l.Per > MaxDelay || l.Per%time.Millisecond != 0):
		return invalid("per", "%v is out of range (1 ms to 10 years, in whole milliseconds)", l.Per)
	case l.Rate > 0 && (l.Burst < 1 || l.Burst > maxRate):
		return invalid("burst", "%d is out of range (1 to %d)", l.Burst, maxRate)
	}
	return nil
}
