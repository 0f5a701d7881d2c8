package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ops"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
	"example.com/runner/web"
)

func serveCommand(a *cli.App) *cli.Command {
	var o serveOptions
	return &cli.Command{
		Category: "Maintain", Usage: "serve the dashboard, health checks and metrics", UsageText: "runner serve [OPTIONS]",
		Description: `EXAMPLES
  runner serve --open
  runner serve --listen 127.0.0.1:9000 --read-only
  ssh -L 8484:127.0.0.1:8484 HOST      # to open the pages of another machine

serve shows queues, tasks, output and schedules in a browser, until a signal
stops it. On a terminal serve prints the address with a token; open that
address. The token is in the file runner.db.d/token, which only your user can
read. If the output of serve is a pipe or a file, serve prints the address
without the token, and the path of the token file. Every page and every action
needs the token, except /healthz and /readyz: /healthz answers 200 while the
process runs, and /readyz answers 200 if the database accepts writes and a
worker runs.

On the pages you can retry, cancel and delete tasks, and pause queues and
schedules. You cannot enqueue commands on the pages. runner work --serve ADDR
serves the same pages. Each option has an environment variable, such
as RUNNER_LISTEN=127.0.0.1:9000.

EXIT STATUS
  0   stopped by a signal
  1   no database, or the address cannot be used
  2   invalid usage, or other machines can reach the address (see --insecure)
  75  the database was busy for too long`,
		Flags: cli.FromEnvironment(append([]cli.Flag{
			cli.Text(&o.Listen, "listen", "ADDR", "HOST:PORT or unix:PATH").Default("127.0.0.1:8484"),
			cli.Bool(&o.open, "open", "open the pages in a browser"),
		}, o.Pages.Options()...)),
		Before: cli.NoArgs("runner serve --listen 127.0.0.1:8484"),
		Action: a.Action(nil, o.run),
	}
}

type serveOptions struct {
	cli.Pages
	open bool
}

func (o *serveOptions) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	o.Log = ops.NewLog(p.Stderr, ops.StyleFor("auto", p.Stderr), slog.LevelInfo)
	s, err := web.Listen(r, o.Server())
	if err != nil {
		return err
	}

	// Handle signals before the address is printed: a program that reads it may
	// send a signal at once.
	ctx, release := ui.Until(ctx)
	defer release()

	url, hidden := cli.ShownURL(s, &p.Stdout, o.PrintToken)
	if err := errors.Join(p.Answer(ui.Serve(url, s.TokenFile()), url+"\n", url), p.Flush()); err != nil {
		return err
	}
	if hidden != "" {
		p.Tell("%s", hidden)
	}

	p.Note("press ^C to stop")
	if o.open {
		file, err := cli.OpenBrowser(ctx, s.URL())
		if err != nil {
			p.Say("cannot start a browser: %v", err)
		}
		defer os.Remove(file)
	}

	return s.Serve(ctx)
}
