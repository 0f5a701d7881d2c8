package view

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/selftest"
	"example.com/runner/internal/term"
)

// SelftestLine returns a line for a terminal that shows what a running selftest does.
func SelftestLine(o selftest.Options, now selftest.Progress) string {
	switch now.Phase {
	case "commits":
		return "  killing processes while they commit"
	case "faults":
		return fmt.Sprintf("  %s of %s  %d kills and stops  seed %d", now.Done.Truncate(time.Second), o.For, now.Faults, o.Seed)
	case "drain":
		return fmt.Sprintf("  waiting for the last tasks  %s left", humanize.Count(int64(now.Left)))
	}
	return "  checking the history"
}

// PrintSelftest prints the results of a selftest.
func PrintSelftest(p *term.Printer, r *selftest.Report) {
	rows := selftestRows(r)
	if !p.Stdout.TTY {
		for _, row := range rows {
			p.Fields(row.name, row.value)
		}
		for _, v := range r.Violations {
			p.Fields("violation", v.Invariant, strconv.FormatInt(v.Task, 10), v.Text)
		}
		return
	}
	wide := 0
	for _, row := range rows {
		wide = max(wide, len(row.name))
	}
	for _, row := range rows {
		p.Print(fmt.Sprintf("  %-*s  %s\n", wide, row.name, row.value))
	}
	if len(r.Violations) == 0 {
		p.Print(p.Stdout.Paint(term.Green, "no violations") + "\n")
		return
	}
	p.Print(p.Stdout.Paint(term.Red, fmt.Sprintf("VIOLATIONS: %s", strings.Join(r.Broken(), ", "))) + "\n")
	for _, v := range r.Violations[:min(len(r.Violations), 20)] {
		for i, line := range term.Wrap(humanize.Safe(v.String()), max(p.Stdout.Width-4, 20)) {
			p.Print(strings.Repeat(" ", 2+2*min(i, 1)) + line + "\n")
		}
	}
	p.Print("files kept in: " + humanize.Safe(r.Dir) + "\n")
}

// selftestRow is a line of the results: a name and a value.
type selftestRow struct{ name, value string }

func selftestRows(r *selftest.Report) []selftestRow {
	n := func(n int) string { return humanize.Count(int64(n)) }
	s := func(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) + "s" }
	f := r.Figures
	rows := []selftestRow{
		{"seed", strconv.FormatUint(r.Seed, 10)}, {"tasks", n(r.Tasks)}, {"claims", n(r.Claims)}, {"losses", n(r.Losses)},
		{"kills and stops", n(r.KillsStops)}, {"violations", n(len(r.Violations))}, {"acknowledged enqueues", n(r.Enqueued)},
		{"acknowledged enqueues lost", n(f.Lost)}, {"kills of a committing process", n(r.CommitKills)},
		{"overlapping executions", n(f.Overlaps)},
		{"orphans 1s after SIGKILL", n(f.Orphans)}, {"freezes of all processes", n(r.Faults["freeze"])},
		{"kills of guardians", n(r.Faults["kill_guardian"] + r.Faults["kill_both"])}, {"leftovers made", n(f.Leftovers)},
		{"leftovers unreadable", n(f.Unreadable)}, {"leftovers of another user", n(f.Foreign)},
		{"leftovers 1s after the end", n(f.Survivors)},
		{"attempts failed by runner's own kill", n(f.OwnKills)}, {"recording of an end p99", s(f.DelayP99)},
		{"bind mounts of the file", n(r.Faults["bind_mount"])}, {"removals of shared memory", n(r.Faults["remove_shm"])},
		{"busy errors", n(f.Busy)}, {"recovery after SIGKILL p99", s(f.RecoveryP99)},
		{"recovery after SIGKILL max", s(f.RecoveryMax)}, {"recovery by lease max", s(f.LeaseMax)},
		{"reopen after a kill max", s(f.OpenMax)},
		{"drain", s(f.Drain)},
	}
	if r.Server {
		rows = append(rows, selftestRow{"kills of the server", n(r.Faults["kill_server"])},
			selftestRow{"promotions of the standby", n(r.Faults["promote"])},
			selftestRow{"first claim after a kill of the server max", s(f.ResumeMax)})
	}
	if r.Dir != "" {
		rows = append(rows, selftestRow{"kept in", r.Dir})
	}
	return slices.Clip(rows)
}
