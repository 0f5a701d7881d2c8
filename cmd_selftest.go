package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/selftest"
	"example.com/runner/internal/selftestrole"
	"example.com/runner/internal/signals"
	"example.com/runner/internal/term"
	"example.com/runner/internal/timetext"
	"example.com/runner/internal/view"
)

func selftestCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Usage:     "test the guarantees of runner on this machine",
		UsageText: "runner selftest [--for DUR] [--seed N] [--dir DIR] [--postgres] [--json]",
		Description: `EXAMPLES
  runner selftest
  runner selftest --for 30m --dir /mnt/backup
  runner selftest --postgres

selftest checks the guarantees of docs/reliability.md on this machine, its disk
and its kernel. Six workers run a demanding workload in a new database below
--dir. Meanwhile the test kills, stops and starves them several times a second.
It also stops all of its processes several times a minute, as a suspend does.
Then it checks every step of the recorded history against the invariants. It
does not touch your databases, and it uses all processors. It fills a filesystem
smaller than 1 GB for moments. As root it also starts processes of the user
65534 and mounts a file in a mount namespace of its own.

With --postgres the test starts a PostgreSQL server and a synchronous standby
from the installed programs and simulates two hosts. It cuts and stalls their
connections, also in the middle of commits. It kills the server, and promotes
the standby.

The test deletes its files unless it finds a violation. Then it keeps the
database, the logs and the histories. --seed repeats the random choices; the
timing of the machine may still lead to other events.

In a pipe, selftest prints each figure and its value, separated by a tab, then
each violation. --json prints one record. selftest runs on Linux only.

EXIT STATUS
  0   no violation
  1   a violation, or the test could not run
  2   invalid usage`,
		Flags: []cli.Flag{
			cli.DurationOption("for", "how long workers are killed and stopped", time.Minute).Default("60s"),
			cli.Scalar("seed", "N", "seed of the random choices; the test prints it", uint64(0), parseSeed).Default("random"),
			cli.TextOption("dir", "DIR", "directory in which the test creates a directory for its files", "").
				Default("the system's temporary directory"),
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
		return o, failure.Usage("selftest takes no arguments; got %q", c.Args().First())
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
		return 0, errors.New("invalid number; use 1 or more")
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
		b.Draw(term.Cut(view.SelftestLine(o, now), max(p.Stderr.Width-1, 20)))
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
		view.PrintSelftest(p, report)
	}
	if err == nil && len(report.Violations) > 0 {
		return failure.ExitStatus(1)
	}
	return err
}
