package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/logging"
	"example.com/runner/internal/pages"
	"example.com/runner/internal/record"
	"example.com/runner/internal/signals"
	"example.com/runner/internal/term"
	"example.com/runner/runner"
	"example.com/runner/web"
)

func serveCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "serve", Category: "Look after", Usage: "web dashboard, health and metrics", UsageText: "runner serve [OPTIONS]",
		Description: `Shows queues, tasks, their output and schedules to a browser, until a signal
stops it. Open the address that it prints on a terminal: it holds a token, which
is in a file of this user (runner.db.d/token). A pipe or a log gets the address
without the token, and the path of that file. Without the token nobody sees or
does anything, not even another user of this machine. From another machine:
  ssh -L 8484:127.0.0.1:8484 HOST

Tasks can be retried, cancelled and deleted there, queues and schedules paused;
commands cannot be enqueued. runner work --serve ADDR does the same in a worker.
Every option has a variable: RUNNER_LISTEN=127.0.0.1:9000.

  /healthz  200 while the process lives          /readyz  200 when the database
  takes writes and a worker was seen; both without the token

EXIT STATUS
  0   stopped by a signal
  1   no database, or the address cannot be listened on
  2   usage; also an address that other machines reach, without --insecure
  75  the database was busy for too long`,
		Flags: cli.FromEnvironment(append([]cli.Flag{
			cli.TextOption("listen", "ADDR", "HOST:PORT or unix:PATH (127.0.0.1:8484)", "127.0.0.1:8484"),
			cli.BoolOption("open", "open it in the browser")}, pages.Options()...)),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("serve takes no words: %q", c.Args().First()).Hint("runner serve --listen 127.0.0.1:8484")
			}
			o := pages.ReadOptions(c)
			o.Listen = cli.Get[string](c, "listen")
			o.Log = logging.New(a.Printer.Stderr, logging.StyleFor("auto", a.Printer.Stderr, a.Getenv("JOURNAL_STREAM")), slog.LevelInfo)
			r, err := a.Open(c, false, runner.Options{})
			if err != nil {
				return err
			}
			defer r.Close()
			return runServe(c.Context, r, a.Printer, o, cli.Get[bool](c, "print-token"), cli.Get[bool](c, "open"))
		},
	}
}

func runServe(ctx context.Context, r *runner.Runner, p *term.Printer, o web.ServerOptions, printToken, open bool) error {
	s, err := web.Listen(r, o)
	if err != nil {
		return err
	}
	url, hidden := pages.ShownURL(s, &p.Stdout, printToken)
	if p.JSON {
		err = p.Record(record.Serve{URL: url, TokenFile: record.Known(s.TokenFile())})
	} else {
		p.Print(url + "\n")
	}
	if err := errors.Join(err, p.Flush()); err != nil {
		return err
	}
	if hidden != "" && !p.JSON {
		p.Say("%s", hidden)
	}
	p.Note("^C stops it")
	if open {
		file, err := pages.OpenBrowser(ctx, s.URL())
		if err != nil {
			p.Say("no browser could be started: %v", err)
		}
		defer os.Remove(file)
	}
	ctx, release := signals.Until(ctx)
	defer release()
	return s.Serve(ctx)
}
