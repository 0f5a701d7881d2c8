package main

import (
	"context"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/doctor"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
)

func doctorCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Maintain", Usage: "check the database, the workers and this machine",
		UsageText: "runner doctor [--quiet] [--full]",
		Description: `EXAMPLES
  runner doctor
  runner doctor --quiet || mail -s "runner on $(hostname)" root
  runner doctor --full

doctor prints a line for each check: ok, warn or FAIL, and what you can do about
a problem. doctor changes nothing. It exits 1 if a check failed, and 0 if there
are only warnings. In a pipe, tabs separate status, check, message and hint. For
a health check in a Dockerfile: HEALTHCHECK CMD ["runner", "doctor", "--quiet"]

  database     path, schema and size of the database; whether it can be opened
  sessions     PostgreSQL: transactions that slow the server down
  filesystem   whether the filesystem is local and has free space
  permissions  whether only the user of the worker can write the database
  integrity    result of SQLite's quick_check; with --full: integrity_check
  wal          size of the write-ahead log; processes that keep it large
  clock        whether the clock is behind the times in the database, or jumped
  workers      running and lost workers, outdated programs
  queues       paused queues, and queues without a worker
  schedules    late or failed schedules, skipped ticks
  backup       age of the last copy by runner backup
  other db     databases in other places where runner looks for one`,
		Flags: []cli.Flag{cli.BoolOption("quiet", "print only warnings and failures"),
			cli.BoolOption("full", "also compare the indexes with their tables; slow")},
		Action: func(c *cli.Context) error {
			o, err := readDoctorOptions(c, a)
			if err != nil {
				return err
			}
			r, err := a.Open(c, false, runner.Options{})
			if err == nil {
				defer r.Close()
			}
			o.openError = err
			return runDoctor(c.Context, r, a.Printer, o)
		},
	}
}

type doctorOptions struct {
	quiet, full bool
	path        string   // path of the database
	others      []string // databases that runner would use without --db
	openError   error    // why the database cannot be opened; nil if it can
}

func readDoctorOptions(c *cli.Context, a *cli.App) (doctorOptions, error) {
	if words := c.Args().Slice(); len(words) > 0 {
		return doctorOptions{}, failure.Usage("doctor takes no arguments; got %q", words[0])
	}
	d, err := a.FindDatabase(cli.Get[string](c, "db"))
	return doctorOptions{quiet: cli.Get[bool](c, "quiet"), full: cli.Get[bool](c, "full"), path: d.Path,
		others: a.OtherDatabases(d.Path)}, err
}

// runDoctor prints the result of each check as soon as it is known, because some checks are slow.
func runDoctor(ctx context.Context, r *runner.Runner, p *term.Printer, o doctorOptions) error {
	failed := false
	d := doctor.Doctor{Runner: r, Now: p.Now(), Full: o.full, Path: o.path, Others: o.others, OpenError: o.openError}
	err := d.Run(ctx, func(c doctor.Check) error {
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
