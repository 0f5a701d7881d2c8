package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/selftest"
	"example.com/runner/internal/selftestrole"
	"example.com/runner/internal/signals"
	"example.com/runner/internal/term"
	"example.com/runner/internal/timetext"
)

func selftestCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "selftest", Usage: "check the guarantees on this machine: kill, stop and starve workers",
		UsageText: "runner selftest [--for DUR] [--seed N] [--dir DIR] [--postgres] [--json]",
		Description: `Checks the guarantees of docs/reliability.md on this machine, its disk and its
kernel. Six workers run a demanding workload in a new database below --dir.
Meanwhile the test kills, stops and starves them several times a second, and
freezes all of its processes several times a minute, as a suspend does. Then it
checks every step of the recorded history against the invariants. It does not
touch your databases, and it uses all processors. It also fills a filesystem
smaller than 1 GB for moments. As root it also starts processes of the user
65534 and mounts a file in a mount namespace of its own.

--postgres uses a PostgreSQL server that the test starts from the installed
programs. The test then simulates two hosts. It cuts and stalls their
connections, also in the middle of commits, and it kills the server.

The test deletes its files unless it found a violation. Then it keeps the
database, the logs and the histories. --seed repeats the random choices; the
timing of the machine may still lead to other events.

In a pipe: each figure and its value, separated by a tab, then each violation.
--json prints one record with violations and figures. Linux only.

EXAMPLES
  runner selftest
  runner selftest --for 30m --dir /mnt/the-disk-in-question
  runner selftest --postgres

EXIT STATUS
  0   no violation
  1   a violation, or the test could not run
  2   usage`,
		Flags: []cli.Flag{
			cli.DurationOption("for", "how long workers are killed and stopped (60s)", time.Minute),
			cli.Scalar("seed", "N", "seed of the random choices (random; it is printed)", uint64(0), parseSeed),
			cli.TextOption("dir", "DIR", "directory in which the test creates its own (the system's temporary directory)", ""),
			cli.BoolOption("postgres", "use a PostgreSQL server that the test starts, and kill it too"),
		},
		Action: func(c *cli.Context) error {
			o, err := readSelftestOptions(c)
			if err != nil {
				return err
			}
			if cli.Get[bool](c, "postgres") {
				stop, err := selftestrole.OnOwnServer(c.Context, &o)
				if err != nil {
					return failure.Internal("the selftest could not run", err)
				}
				defer stop()
			}
			return runSelftest(c.Context, a.Printer, o)
		},
	}
}

func readSelftestOptions(c *cli.Context) (selftest.Options, error) {
	o := selftest.Options{For: cli.Get[time.Duration](c, "for"), Seed: cli.Get[uint64](c, "seed"), Dir: cli.Get[string](c, "dir"),
		Name: os.Args[0]}
	if c.Args().Present() {
		return o, failure.Usage("selftest takes no arguments: %q", c.Args().First())
	}
	if o.For < time.Second {
		return o, failure.Usage("--for %s is too short; use 1s or more", timetext.WriteDuration(o.For)).Hint("runner selftest --for 10s")
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1e9) + 1
	}
	var err error
	o.Path, err = os.Executable()
	return o, err
}

func parseSeed(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, errors.New("is not a number from 1 up")
	}
	return n, nil
}

func runSelftest(ctx context.Context, p *term.Printer, o selftest.Options) error {
	ctx, stop := signals.Until(ctx)
	defer stop()
	b := term.NewBar(p, fmt.Sprintf("seed %d", o.Seed))
	phase, next := "", time.Time{}
	o.Progress = func(now selftest.Progress) {
		if !p.Interactive() && !(p.Stderr.TTY && !p.JSON) || now.Phase == phase && p.Now().Before(next) {
			return
		}
		phase, next = now.Phase, p.Now().Add(term.BarInterval)
		b.Draw(term.Cut(selftestLine(o, now), max(p.Stderr.Width-1, 20)))
	}
	report, err := selftest.Run(ctx, o)
	b.Clear()
	if s, ok := errors.AsType[signals.Received](context.Cause(ctx)); err != nil && ok {
		return failure.ExitStatus(s.Status())
	}
	switch {
	case errors.Is(err, selftest.ErrUnsupported):
		return failure.Internal("the selftest does not support this system", err)
	case err != nil:
		return failure.Internal("the selftest could not run", err)
	}
	if p.JSON {
		err = p.Record(report)
	} else {
		printSelftest(p, report)
	}
	if err == nil && len(report.Violations) > 0 {
		return failure.ExitStatus(1)
	}
	return err
}

// selftestLine returns the progress line for a terminal.
func selftestLine(o selftest.Options, now selftest.Progress) string {
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

func printSelftest(p *term.Printer, r *selftest.Report) {
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

// selftestRow is one line of the report.
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
			selftestRow{"first claim after a kill of the server max", s(f.ResumeMax)})
	}
	if r.Dir != "" {
		rows = append(rows, selftestRow{"kept in", r.Dir})
	}
	return slices.Clip(rows)
}
