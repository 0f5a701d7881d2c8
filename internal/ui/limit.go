package ui

import (
	"cmp"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/runner/admin"
)

// Limits is the list of limits.
func Limits(now time.Time) Sheet[admin.LimitStatus] {
	return Sheet[admin.LimitStatus]{
		Row:  func(l admin.LimitStatus) Record { return NewLimit(l, now) },
		Line: []string{"target", "in_use", "running", "rate", "per", "burst", "next_at"},
	}
}

// NewLimit returns a limit's record, with the tasks that use it now.
func NewLimit(l admin.LimitStatus, now time.Time) Record {
	return NewRecord(
		Member{Key: "target", Value: l.Target.String(), Name: "TARGET"},
		Member{Key: "running", Value: Known(l.Running), Name: "RUNNING", Text: cmp.Or(LimitRunning(l), "–"),
			Right: true, Drop: 2},
		Member{Key: "rate", Value: Known(l.Rate), Name: "RATE", Text: cmp.Or(LimitRate(l), "–")},
		"per", Known(Seconds(l.Per)),
		Member{Key: "burst", Value: Known(l.Burst), Name: "BURST", Text: cmp.Or(Text(Known(l.Burst)), "–"),
			Right: true, Drop: 1},
		"in_use", l.InUse,
		Member{Key: "next_at", Value: Stamp(l.NextAt), Name: "NEXT START", Text: nextStart(l, now), Drop: 3},
		"updated_at", Stamp(l.UpdatedAt))
}

// nextStart says when a limit lets a task start.
func nextStart(l admin.LimitStatus, now time.Time) string {
	switch {
	case l.Running > 0 && l.InUse >= l.Running || l.Kind == admin.LaneTarget && l.InUse >= max(l.Running, 1):
		return "when one ends"
	case l.NextAt.After(now):
		return "in " + humanize.Age(humanize.Soon(l.NextAt.Sub(now)))
	}
	return "now"
}
