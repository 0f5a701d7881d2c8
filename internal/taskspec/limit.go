package taskspec

import (
	"errors"
	"math"
	"strings"
	"time"

	"example.com/runner/jobs"
)

const (
	maxRate = 1_000_000
	minPer  = time.Millisecond
)

// ValidateLimit returns the first error that it finds in a limit.
func ValidateLimit(l jobs.Limit) error {
	if err := ValidateTarget(l.Target); err != nil {
		return err
	}

	switch {
	case l.Running < 0 || l.Running > math.MaxInt32:
		return invalid("running", "%d is out of range (1 or more)", l.Running)
	case l.Running == 0 && l.Rate == 0:
		return invalid("rate", "a limit needs running or rate")
	case l.Rate < 0 || l.Rate > maxRate:
		return invalid("rate", "%d is out of range (1 to %d)", l.Rate, maxRate)
	case l.Rate == 0 && (l.Per != 0 || l.Burst != 0):
		return invalid("burst", "needs rate")
	case l.Rate > 0 && (l.Per < minPer || l.Per > MaxDelay || l.Per%time.Millisecond != 0):
		return invalid("per", "%v is out of range (1 ms to 10 years, in whole milliseconds)", l.Per)
	case l.Burst < 0 || l.Burst > maxRate:
		return invalid("burst", "%d is out of range (0 to %d)", l.Burst, maxRate)
	}

	return nil
}

// ParseTarget parses queue:NAME, job:NAME, lane:KEY or all.
func ParseTarget(text string) (jobs.Target, error) {
	kind, name, found := strings.Cut(text, ":")
	if !found && text != jobs.AllTarget {
		return jobs.Target{}, invalidTarget(text)
	}
	t := jobs.Target{Kind: kind, Name: name}
	return t, ValidateTarget(t)
}

func invalidTarget(text string) error {
	return invalid("target", "invalid target %q; use queue:NAME, job:NAME, lane:KEY or all", text)
}

// ValidateTarget returns a *jobs.FieldError about the target if it is invalid.
func ValidateTarget(t jobs.Target) error {
	var err error
	switch t.Kind {
	case jobs.QueueTarget:
		err = ValidQueue(t.Name)
	case jobs.JobTarget:
		err = ValidJob(t.Name)
	case jobs.LaneTarget:
		if t.Name == "" {
			return invalid("target", "lane: needs a key")
		}
		err = validKey("lane", t.Name)
	case jobs.AllTarget:
		if t.Name != "" {
			return invalidTarget(t.Kind + ":" + t.Name)
		}
	default:
		return invalidTarget(t.String())
	}

	if field, ok := errors.AsType[*jobs.FieldError](err); ok {
		return invalid("target", "%s", field.Msg)
	}

	return err
}

// Limits are limits with their present use, by target.
type Limits map[jobs.Target]jobs.LimitStatus

// LimitsOf returns the limits of a list.
func LimitsOf(list []jobs.LimitStatus) Limits {
	limits := Limits{}
	for _, l := range list {
		limits[l.Target] = l
	}
	return limits
}

// IsClosed reports whether the limit of a target permits no further start now.
func (l Limits) IsClosed(kind, name string) bool {
	s := l[jobs.Target{Kind: kind, Name: name}]
	return !s.NextAt.IsZero() || s.Running > 0 && s.InUse >= s.Running
}

// Holding returns the limit that keeps a due task from starting now. It returns
// false if there is none, for example because the task waits for other tasks.
func (l Limits) Holding(t *jobs.Task) (jobs.LimitStatus, bool) {
	var targets []jobs.Target
	switch {
	case t.State == jobs.Blocked && !t.Waits:
		targets = []jobs.Target{{Kind: jobs.LaneTarget, Name: t.Lane}}
	case t.State == jobs.Pending:
		targets = []jobs.Target{{Kind: jobs.AllTarget}, {Kind: jobs.QueueTarget, Name: t.Queue}, {Kind: jobs.JobTarget, Name: t.Job}}
	}

	for _, target := range targets {
		if l.IsClosed(target.Kind, target.Name) {
			return l[target], true
		}
	}

	return jobs.LimitStatus{}, false
}
