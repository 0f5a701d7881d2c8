package main

import (
	"context"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
)

func doctorCommand(a *cli.App) *cli.Command {
	var quiet, full bool
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
  filesystem   whether the filesystem is local and has free space
  permissions  whether only the user of the worker can write the database
  integrity    result of SQLite's quick_check; with --full: integrity_check
  wal          size of the write-ahead log; processes that keep it large
  clock        whether the clock is behind the times in the database, or jumped
  workers      running and lost workers, other versions of runner
  queues       paused queues, and queues without a worker
  schedules    late or failed schedules, skipped ticks
  backup       age of the last copy by runner backup

On a server, doctor leaves out filesystem, permissions, integrity, wal and
backup.`,
		Flags: []cli.Flag{
			cli.Bool(&quiet, "quiet", "print only warnings and failures"),
			cli.Bool(&full, "full", "also compare the indexes with their tables; slow"),
		},
		Before: cli.NoArgs(""),
		Action: func(c *cli.Context) error {
			d, err := a.Database()
			if err != nil {
				return err
			}

			r, err := a.Open(c, false, runner.Options{})
			if err == nil {
				defer r.Close()
			}

			o := ops.Doctor{Runner: r, Now: a.Now(), Full: full, Path: d.Path, OpenError: err}
			return runDoctor(c.Context, a.Printer, &o, quiet)
		},
	}
}

// runDoctor prints the result of each check at once, because some are slow.
func runDoctor(ctx context.Context, p *ui.Printer, d *ops.Doctor, quiet bool) error {
	failed := false
	err := d.Run(ctx, func(c ops.Check) error {
		failed = failed || c.Status == ops.Fail
		if quiet && c.Status == ops.OK {
			return nil
		}
		if err := ops.Print(p, c); err != nil {
			return err
		}
		return p.Flush()
	})
	if err == nil && failed {
		return ui.ExitStatus(1)
	}

	return err
}
