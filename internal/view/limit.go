package view

import (
	"cmp"
	"strconv"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// LimitLine prints a limit as a line with tabs, for other programs.
func LimitLine(p *term.Printer, status runner.LimitStatus) {
	l := record.NewLimit(status)
	number := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	per := ""
	if l.Per != nil {
		per = l.Per.String()
	}
	p.Fields(l.Target, strconv.Itoa(l.InUse), number(l.Running), number(l.Rate), per, number(l.Burst), l.NextAt.String())
}

// LimitTable returns a table of limits, for a terminal.
func LimitTable(list []runner.LimitStatus, now time.Time) term.Table {
	t := term.Table{Columns: []term.Column{{Name: "TARGET"}, {Name: "RUNNING", AlignRight: true, DropOrder: 2}, {Name: "RATE"},
		{Name: "BURST", AlignRight: true, DropOrder: 1}, {Name: "NEXT START", DropOrder: 3}}}
	for _, l := range list {
		burst, next := "–", "now"
		if l.Rate > 0 {
			burst = strconv.Itoa(l.Burst)
		}
		switch {
		case l.Running > 0 && l.InUse >= l.Running || l.Kind == jobs.LaneTarget && l.InUse >= max(l.Running, 1):
			next = "when one ends"
		case l.NextAt.After(now):
			next = "in " + humanize.Age(humanize.Soon(l.NextAt.Sub(now)))
		}
		t.Rows = append(t.Rows, []string{l.Target.String(), cmp.Or(present.LimitRunning(l), "–"), cmp.Or(present.LimitRate(l), "–"),
			burst, next})
	}
	return t
}
