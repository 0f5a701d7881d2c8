package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/logging"
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
			cli.BoolOption("open", "open it in the browser")}, serveOptions()...)),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return failure.Usage("serve takes no words: %q", c.Args().First()).Hint("runner serve --listen 127.0.0.1:8484")
			}
			o := readServeOptions(c)
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

// serveOptions returns the options that serve and work --serve share.
func serveOptions() []cli.Flag {
	return []cli.Flag{
		cli.BoolOption("read-only", "show everything, change nothing"),
		cli.TextOption("base-path", "PATH", "where the pages begin (/)", "/"),
		cli.TextOption("public-url", "URL", "how browsers reach it through a proxy", ""),
		cli.ChoiceOption("auth", "none: with a unix socket only (token)", "token", "token", "none"),
		cli.TextOption("token-file", "FILE", "holds the token; made if missing (runner.db.d/token)", ""),
		cli.BoolOption("print-token", "print the address with the token to a pipe or a log, too"),
		cli.BoolOption("hide-args", "keep arguments, commands, results and output here"),
		cli.BoolOption("insecure", "listen where other machines reach it, without TLS"),
	}
}

func readServeOptions(c *cli.Context) web.ServerOptions {
	return web.ServerOptions{
		Options: web.Options{BasePath: cli.Get[string](c, "base-path"), ReadOnly: cli.Get[bool](c, "read-only"),
			HideArgs: cli.Get[bool](c, "hide-args")},
		PublicURL: cli.Get[string](c, "public-url"), TokenFile: cli.Get[string](c, "token-file"),
		NoToken:  cli.Get[string](c, "auth") == "none",
		Insecure: cli.Get[bool](c, "insecure")}
}

func runServe(ctx context.Context, r *runner.Runner, p *term.Printer, o web.ServerOptions, printToken, open bool) error {
	s, err := web.Listen(r, o)
	if err != nil {
		return err
	}
	url, hidden := shownURL(s, &p.Stdout, printToken)
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
		file, err := openBrowser(ctx, s.URL())
		if err != nil {
			p.Say("no browser could be started: %v", err)
		}
		defer os.Remove(file)
	}
	ctx, release := signals.Until(ctx)
	defer release()
	return s.Serve(ctx)
}

// shownURL returns the address of the pages for output to out. If out is not a terminal, the address has no token, because a log must not
// contain it. In that case hidden is a sentence that says where the token is.
func shownURL(s *web.Server, out *term.Stream, printToken bool) (url, hidden string) {
	if out.TTY || printToken || s.TokenFile() == "" {
		return s.URL(), ""
	}
	return s.Address(), "sign in with the token in " + s.TokenFile() + "; --print-token prints it here"
}

// openBrowser opens an address with the program that the system uses for addresses. All users can read the list of processes, so the
// address with the token is written to a file that only this user can read. The caller must remove the file.
func openBrowser(ctx context.Context, url string) (file string, err error) {
	if !strings.HasPrefix(url, "http") {
		return "", errors.New("a unix socket has no address that a browser knows")
	}
	made, err := os.CreateTemp("", "runner-*.html") // only this user can read the file
	if err != nil {
		return "", err
	}
	_, err = made.WriteString(`<!doctype html><meta http-equiv="refresh" content="0; url=` + url + `">`)
	if err := errors.Join(err, made.Close()); err != nil {
		return made.Name(), err
	}
	name, args := "xdg-open", []string{made.Name()}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", made.Name()}
	}
	return made.Name(), exec.CommandContext(ctx, name, args...).Start()
}
