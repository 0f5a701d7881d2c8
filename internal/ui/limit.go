package ui

import (
	"cmp"
	"strconv"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Limits is the list of limits.
func Limits(now time.Time) Sheet[runner.LimitStatus] {
	return Sheet[runner.LimitStatus]{
		Record: NewLimit,
		Line: func(l runner.LimitStatus) []any {
			return NewLimit(l).Only("target", "in_use", "running", "rate", "per", "burst", "next_at").Values()
		},
		Table: Table{Columns: []Column{{Name: "TARGET"}, {Name: "RUNNING", AlignRight: true, DropOrder: 2},
			{Name: "RATE"}, {Name: "BURST", AlignRight: true, DropOrder: 1}, {Name: "NEXT START", DropOrder: 3}}},
		Cells: func(l runner.LimitStatus) []string {
			burst := "–"
			if l.Rate > 0 {
				burst = strconv.Itoa(l.Burst)
			}
			return []string{l.Target.String(), cmp.Or(LimitRunning(l), "–"), cmp.Or(LimitRate(l), "–"), burst,
				nextStart(l, now)}
		},
	}
}

// nextStart says when a limit lets a task start.
func nextStart(l runner.LimitStatus, now time.Time) string {
	switch {
	case l.Running > 0 && l.InUse >= l.Running || l.Kind == jobs.LaneTarget && l.InUse >= max(l.Running, 1):
		return "when one ends"
	case l.NextAt.After(now):
		return "in " + humanize.Age(humanize.Soon(l.NextAt.Sub(now)))
	}
	return "now"
}
