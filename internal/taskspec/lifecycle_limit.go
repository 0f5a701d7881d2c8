package taskspec

import (
	"example.com/runner/jobs"
)

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
