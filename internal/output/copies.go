package output

import (
	"context"
	"log/slog"
	"sync"

	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Copies says to which places, besides the database, a worker copies the output of its commands.
type Copies struct {
	Tee    bool   // whether to copy the output to stdout and stderr
	Prefix bool   // whether each line on stdout and stderr begins with the id of its task
	Dir    string // directory for one output file per attempt; empty for no files
	Size   int64  // maximum size of an output file; 0 for no limit
	Log    *slog.Logger
	Pages  string // URL of the web pages, for $RUNNER_EVENT_URL of hooks; empty if unknown
}

// Register registers with r a handler of commands that makes these copies. When r runs no more tasks, the caller must call stop.
func (o Copies) Register(ctx context.Context, r *runner.Runner, p *term.Printer) (stop func(), err error) {
	var tee func(jobs.Task, string, []byte)
	if o.Tee {
		tee = NewTee(p.Stdout, p.Stderr, o.Prefix, o.Log).Copy
	}
	if o.Dir == "" {
		r.Register(runner.Commands(runner.CommandOptions{Tee: tee, PagesURL: o.Pages}))
		return func() {}, nil
	}
	files, err := OpenFiles(r, o.Dir, o.Size, o.Log)
	if err != nil {
		return nil, err
	}
	r.Register(files.Record(runner.Commands(runner.CommandOptions{PagesURL: o.Pages, Tee: func(task jobs.Task, stream string, data []byte) {
		files.Copy(task, stream, data)
		if tee != nil {
			tee(task, stream, data)
		}
	}})))
	ctx, cancel := context.WithCancel(ctx)
	var sweeper sync.WaitGroup
	sweeper.Go(func() { files.Sweep(ctx, r) })
	return func() {
		cancel()
		sweeper.Wait()
		_ = files.Close()
	}, nil
}
