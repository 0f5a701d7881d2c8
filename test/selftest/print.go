package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"example.com/runner/test/selftest/harness"
)

// printReport prints each figure and its value, then each violation.
func printReport(w io.Writer, r *harness.Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range figures(r) {
		fmt.Fprintf(table, "%s\t%s\n", row.name, row.value)
	}

	if err := table.Flush(); err != nil {
		return err
	}

	for _, v := range r.Violations {
		fmt.Fprintln(w, "VIOLATION", v)
	}

	if len(r.Violations) == 0 {
		_, err := fmt.Fprintln(w, "no violations")
		return err
	}

	_, err := fmt.Fprintln(w, "files kept in", r.Dir)
	return err
}

type figure struct{ name, value string }

func figures(r *harness.Report) []figure {
	n := strconv.Itoa
	s := func(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) + "s" }
	f := r.Figures
	rows := []figure{
		{"seed", strconv.FormatUint(r.Seed, 10)},
		{"tasks", n(r.Tasks)},
		{"claims", n(r.Claims)},
		{"losses", n(r.Losses)},
		{"kills and stops", n(r.KillsStops)},
		{"acknowledged enqueues", n(r.Enqueued)},
		{"acknowledged enqueues lost", n(f.Lost)},
		{"kills of a committing process", n(r.CommitKills)},
		{"overlapping executions", n(f.Overlaps)},
		{"orphans 1s after SIGKILL", n(f.Orphans)},
		{"freezes of all processes", n(r.Faults["freeze"])},
		{"kills of guardians", n(r.Faults["kill_guardian"] + r.Faults["kill_both"])},
		{"leftovers made", n(f.Leftovers)},
		{"leftovers unreadable", n(f.Unreadable)},
		{"leftovers of another user", n(f.Foreign)},
		{"leftovers 1s after the end", n(f.Survivors)},
		{"attempts failed by runner's own kill", n(f.OwnKills)},
		{"recording of an end p99", s(f.DelayP99)},
		{"bind mounts of the file", n(r.Faults["bind_mount"])},
		{"removals of shared memory", n(r.Faults["remove_shm"])},
		{"busy errors", n(f.Busy)},
		{"recovery after SIGKILL p99", s(f.RecoveryP99)},
		{"recovery after SIGKILL max", s(f.RecoveryMax)},
		{"recovery by lease max", s(f.LeaseMax)},
		{"reopen after a kill max", s(f.OpenMax)},
		{"drain", s(f.Drain)},
	}
	if r.Server {
		rows = append(rows,
			figure{"kills of the server", n(r.Faults["kill_server"])},
			figure{"promotions of the standby", n(r.Faults["promote"])},
			figure{"first claim after a kill of the server max", s(f.ResumeMax)})
	}

	return rows
}
