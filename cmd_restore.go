package main

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
)

func restoreCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Category: "Maintain", Usage: "put a backup in the place of the database",
		UsageText: "runner restore FILE",
		Description: `EXAMPLES
  runner restore /var/backups/runner-2026-07-01.db
  runner --db new.db restore /var/backups/runner.db
  systemctl stop runner && sudo -u runner runner restore runner.db
  gunzip -k runner.db.gz && runner restore runner.db

FILE is a copy that "runner backup" made. Stop the workers and all programs that
use the database first; restore refuses while a process has it open. It checks
FILE, copies it to the path of the database, and leaves FILE as it is. The
database that was there is kept beside it as NAME.before-restore-TIME; delete
this file when you no longer need it. To go back, restore that file.

A restored database is one from an earlier moment. What happened after the
backup is gone, and new tasks get the ids again that were given after it. Tasks
that ran during the backup are as after a crash: they run again when the lease
of their worker has expired.

A restore that was killed has either ended, or commands refuse the database
until you run restore once more.

In a pipe, restore prints the path of the database, its size in bytes and the
path of the kept file, separated by tabs.`,
		Action: func(c *cli.Context) error {
			file := c.Args().First()
			if c.NArg() != 1 || file == "" || file == "-" {
				return ui.Usage("restore needs one file").Hint("runner restore /var/backups/runner.db")
			}
			path, err := a.PathFor()
			if err != nil {
				return err
			}
			return runRestore(c.Context, a.Printer, path, file, a.UnsafeFS)
		},
	}
}

func runRestore(ctx context.Context, p *ui.Printer, path, file string, unsafeFS bool) error {
	ctx, stop := ui.Until(ctx) // after a signal restore removes its partial file
	defer stop()

	began := p.Now()
	done, err := db.Restore(ctx, path, file, db.Options{UnsafeFS: unsafeFS, BusyTimeout: 5 * time.Second}, began)
	if err = ui.Interrupted(ctx, err); err != nil {
		return err
	}

	text := "restored " + humanize.Size(done.Bytes) + " in " + humanize.Took(p.Now().Sub(began)) + "\n"
	if done.Kept != "" {
		text += "the database from before is kept as " + done.Kept + "\n"
	}

	return p.Answer(ui.Restore(done.Path, done.Bytes, done.Kept), text)
}
