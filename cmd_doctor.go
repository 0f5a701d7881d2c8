package main

import (
	"context"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/doctor"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

func doctorCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "doctor", Category: "Look after", Usage: "check the database, the workers, this machine",
		UsageText: "runner doctor [--quiet] [--full]",
		Description: `One line per check: ok, warn, or FAIL with what to try. Nothing is changed.

  database     which one, its schema and size; can it be opened?
  messages     on a server: LISTEN and NOTIFY arrive (a pooler may break them)
  filesystem   a local one, with space left
  permissions  who may write the database may run commands as the worker's user
  integrity    SQLite's quick_check of every page; --full: integrity_check
  wal          the write-ahead log; who keeps it from starting afresh
  clock        not behind the latest time in the database, no jump forwards
  workers      who runs, who was lost, when one was last seen
  queues       paused ones, and those that no worker serves
  schedules    late ones, skipped ticks, a last task that failed
  other db     databases in the other places where runner looks by itself

In a pipe, separated by tabs: status, check, message, try.

EXAMPLES
  runner doctor --quiet || mail -s "runner on $(hostname)" root
  HEALTHCHECK CMD ["runner", "doctor", "--quiet"]

EXIT STATUS
  0   no check failed; there may be warnings
  1   a check failed
  2   usage`,
		Flags: []cli.Flag{cli.BoolOption("quiet", "only warnings and failures"),
			cli.BoolOption("full", "compare the indexes with their tables, too")},
		Action: func(c *cli.Context) error {
			o, err := readDoctorOptions(c, a)
			if err != nil {
				return err
			}
			r, err := a.Open(c, false, runner.Options{})
			if err == nil {
				defer r.Close()
			}
			o.broken = err
			return runDoctor(c.Context, r, a.Printer, o)
		},
	}
}

type doctorOptions struct {
	quiet, full bool
	path        string   // path of the database
	others      []string // databases that runner finds without --db
	broken      error    // why the database cannot be opened; nil if it can
}

func readDoctorOptions(c *cli.Context, a *cli.App) (doctorOptions, error) {
	if words := c.Args().Slice(); len(words) > 0 {
		return doctorOptions{}, failure.Usage("doctor takes no words: %q", words[0])
	}
	d, err := a.FindDatabase(cli.Get[string](c, "db"))
	return doctorOptions{quiet: cli.Get[bool](c, "quiet"), full: cli.Get[bool](c, "full"), path: d.Path,
		others: a.OtherDatabases(d.Path)}, err
}

// runDoctor prints the result of each check as soon as it is known, because some checks are slow.
func runDoctor(ctx context.Context, r *runner.Runner, p *term.Printer, o doctorOptions) error {
	failed := false
	e := doctor.Doctor{Runner: r, Now: p.Now(), Full: o.full, Path: o.path, Others: o.others, OpenError: o.broken}
	err := e.Run(ctx, func(c record.Check) error {
		failed = failed || c.Status == doctor.Fail
		if o.quiet && c.Status == doctor.OK {
			return nil
		}
		if err := doctor.Print(p, c); err != nil {
			return err
		}
		return p.Flush()
	})
	if err == nil && failed {
		return failure.ExitStatus(1)
	}
	return err
}
