package cli

import (
	"context"

	"example.com/runner/internal/ui"
	"example.com/runner/runner"
	"example.com/runner/web"
)

// ServeBeside serves the web pages while a worker in this process runs tasks. It prints the address to stderr, because stdout may contain
// the output of tasks (--tee).
func ServeBeside(ctx context.Context, r *runner.Runner, p *ui.Printer, options web.ServerOptions, printToken bool) (stop func(),
	err error) {
	s, err := web.Listen(r, options)
	if err != nil {
		return nil, err
	}
	url, hidden := ShownURL(s, &p.Stderr, printToken)
	p.Say("%s", url)
	if hidden != "" {
		p.Say("%s", hidden)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // do not stop the pages when ctx ends, but when the worker has stopped
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.Serve(ctx); err != nil {
			options.Log.Error("pages", "err", err)
		}
	}()
	return func() { cancel(); <-ended }, nil
}
