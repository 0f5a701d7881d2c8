package cli

import (
	"context"

	"example.com/runner/internal/ui"
	"example.com/runner/runner"
	"example.com/runner/web"
)

// ServeBeside serves the web pages while a worker in this process runs tasks.
// It prints the address to stderr, because stdout may have the output of tasks
// (--tee).
func ServeBeside(ctx context.Context, r *runner.Runner, p *ui.Printer, pages *Pages) (stop func(), err error) {
	s, err := web.Listen(r, pages.Server())
	if err != nil {
		return nil, err
	}

	url, hidden := ShownURL(s, &p.Stderr, pages.PrintToken)
	p.Say("%s", url)
	if hidden != "" {
		p.Say("%s", hidden)
	}

	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the pages outlive ctx: they stop after the worker
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Serve(ctx); err != nil {
			pages.Log.Error("pages", "err", err)
		}
	}()
	return func() { cancel(); <-ended }, nil
}
