package db

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Target is the queue, job or lane that a limit applies to, or the whole
// database.
type Target struct {
	Kind TargetKind
	Name string // empty for AllTarget
}

// TargetKind is what a Target names.
type TargetKind string

// The kinds of targets.
const (
	QueueTarget TargetKind = "queue"
	JobTarget   TargetKind = "job"
	LaneTarget  TargetKind = "lane"
	AllTarget   TargetKind = "all" // the whole database: all tasks
)

// String returns the form that the command line uses: queue:media, or all.
func (t Target) String() string {
	if t.Kind == AllTarget {
		return string(t.Kind)
	}
	return string(t.Kind) + ":" + t.Name
}

// Limit sets how many tasks of a target may run at the same time, and how often
// they may start. It holds for all workers together. Running or Rate must be
// set, or both.
//
// The rate is a token bucket: after a time without starts, Burst tasks may
// start at once, and then one task in each period of Per/Rate. So up to
// Rate+Burst tasks may start within one Per. With a Burst of 1 the starts have
// equal intervals. A call of a bulk function (see jobs.Func.BulkHandler) counts
// as one start, however many tasks it has.
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

// LimitStatus is a limit and its use.
type LimitStatus struct {
	Limit
	InUse     int       // number of running tasks of the target
	NextAt    time.Time // time at which the rate limit lets the next task start; zero if a task can start now, or without a rate limit
	UpdatedAt time.Time
}

const (
	maxRate = 1_000_000
	minPer  = time.Millisecond
)

// ValidateLimit returns the first error that it finds in a limit.
func ValidateLimit(l Limit) error {
	if err := ValidateTarget(l.Target); err != nil {
		return err
	}

	switch {
	case l.Running < 0 || l.Running > math.MaxInt32:
		return invalidField("running", "%d is out of range (1 or more)", l.Running)
	case l.Running == 0 && l.Rate == 0:
		return invalidField("rate", "a limit needs running or rate")
	case l.Rate < 0 || l.Rate > maxRate:
		return invalidField("rate", "%d is out of range (1 to %d)", l.Rate, maxRate)
	case l.Rate == 0 && (l.Per != 0 || l.Burst != 0):
		return invalidField("burst", "needs rate")
	case l.Rate > 0 && (l.Per < minPer || l.Per > taskspec.MaxDelay || l.Per%time.Millisecond != 0):
		return invalidField("per", "%v is out of range (1 ms to 10 years, in whole milliseconds)", l.Per)
	case l.Burst < 0 || l.Burst > maxRate:
		return invalidField("burst", "%d is out of range (0 to %d)", l.Burst, maxRate)
	}

	return nil
}

// ParseTarget parses queue:NAME, job:NAME, lane:KEY or all.
func ParseTarget(text string) (Target, error) {
	kind, name, found := strings.Cut(text, ":")
	if !found && text != string(AllTarget) {
		return Target{}, invalidTarget(text)
	}
	t := Target{Kind: TargetKind(kind), Name: name}
	return t, ValidateTarget(t)
}

func invalidTarget(text string) error {
	return invalidField("target", "invalid target %q; use queue:NAME, job:NAME, lane:KEY or all", text)
}

// ValidateTarget returns a *jobs.FieldError about the target if it is invalid.
func ValidateTarget(t Target) error {
	var err error
	switch t.Kind {
	case QueueTarget:
		err = taskspec.ValidQueue(t.Name)
	case JobTarget:
		err = taskspec.ValidJob(t.Name)
	case LaneTarget:
		if t.Name == "" {
			return invalidField("target", "lane: needs a key")
		}
		err = taskspec.ValidKey("lane", t.Name)
	case AllTarget:
		if t.Name != "" {
			return invalidTarget(string(t.Kind) + ":" + t.Name)
		}
	default:
		return invalidTarget(t.String())
	}

	if field, ok := errors.AsType[*jobs.FieldError](err); ok {
		return invalidField("target", "%s", field.Msg)
	}

	return err
}

// Limits are limits with their present use, by target.
type Limits map[Target]LimitStatus

// LimitsOf returns the limits of a list.
func LimitsOf(list []LimitStatus) Limits {
	limits := Limits{}
	for _, l := range list {
		limits[l.Target] = l
	}
	return limits
}

// IsClosed reports whether the limit of a target permits no further start now.
func (l Limits) IsClosed(kind TargetKind, name string) bool {
	s := l[Target{Kind: kind, Name: name}]
	return !s.NextAt.IsZero() || s.Running > 0 && s.InUse >= s.Running
}

// Holding returns the limit that keeps a due task from starting now. It returns
// false if there is none, for example because the task waits for other tasks.
func (l Limits) Holding(t *jobs.Task) (LimitStatus, bool) {
	var targets []Target
	switch {
	case t.State == jobs.Blocked && !t.Waits:
		targets = []Target{{Kind: LaneTarget, Name: t.Lane}}
	case t.State == jobs.Pending:
		targets = []Target{{Kind: AllTarget}, {Kind: QueueTarget, Name: t.Queue}, {Kind: JobTarget, Name: t.Job}}
	}

	for _, target := range targets {
		if l.IsClosed(target.Kind, target.Name) {
			return l[target], true
		}
	}

	return LimitStatus{}, false
}

func invalidField(field, format string, args ...any) error {
	return &jobs.FieldError{Field: field, Msg: fmt.Sprintf(format, args...)}
}
