package main

import (
	"context"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func backupCommand(a *cli.App) *cli.Command {
	var o backupOptions
	return &cli.Command{
		Category: "Maintain", Usage: "copy the database while it is in use",
		UsageText: "runner backup FILE|- [--force]",
		Description: `EXAMPLES
  runner backup "/var/backups/runner-$(date +%F).db"
  runner backup - | gzip >runner.db.gz
  ssh vps runner backup - >runner.db

backup writes a consistent copy while workers continue. The copy has every task
that was enqueued before the backup began. The copy has mode 0600. When backup
returns, the copy is on the disk; after a failure there is no copy. If FILE
is -, backup writes the copy to stdout. Do not use cp on a database in use: the
copy would lack the write-ahead log.

To use a backup, stop the workers and run "runner restore FILE".

In a pipe, backup prints the path and the size of the file in bytes, separated
by a tab.`,
		Flags:  []cli.Flag{cli.Bool(&o.force, "force", "replace FILE if it exists and is a regular file")},
		Action: a.Action(o.read, cli.Reads(o.run)),
	}
}

type backupOptions struct {
	file  string // destination file; "-" means stdout
	force bool
}

func (o *backupOptions) read(c *cli.Context, a *cli.App) error {
	o.file = c.Args().First()
	switch {
	case c.NArg() != 1 || o.file == "":
		return ui.Usage("backup needs one file, or -").Hint("runner backup /var/backups/runner.db")
	case o.file == "-" && a.Printer.JSON:
		return ui.Usage("backup - writes the copy to stdout and cannot be used with --json")
	case o.file == "-" && a.Printer.Stdout.TTY:
		return ui.Usage("stdout is a terminal; backup - writes binary data").Hint("runner backup - >runner.db")
	}

	return nil
}

func (o *backupOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	ctx, stop := ui.Until(ctx) // after a signal the backup removes its partial file
	defer stop()

	began := p.Now()
	var n int64
	var err error
	if o.file == "-" {
		n, err = admin.Backup(ctx, r, admin.BackupOptions{Writer: p.Stdout})
	} else {
		n, err = admin.Backup(ctx, r, admin.BackupOptions{Path: o.file, Replace: o.force})
	}
	if err = ui.Interrupted(ctx, err); err != nil || o.file == "-" {
		return err
	}

	return p.Answer(ui.Backup(o.file, n), "copied "+humanize.Size(n)+" in "+humanize.Took(p.Now().Sub(began))+"\n")
}
