package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/internal/engine"
)

// Work runs tasks until ctx ends. Then it starts nothing more and gives the
// running attempts WorkOptions.Grace to end. Work stops attempts that take
// longer. Their tasks go back to their queues, and these attempts do not count.
// Then Work returns nil. A handler that ignores the end of its context delays
// Work by 5 s after Grace, and its goroutine outlives Work. A command that
// ignores SIGTERM delays Work by its KillAfter and at most 5 s more.
//
// Work returns an error when the database can no longer be used,
// jobs.ErrShutdown when admin.Abort ended the work, and jobs.ErrInvalid for an
// invalid option or when no job is registered. A Runner has at most one Work at
// a time: a second call returns jobs.ErrConflict.
func (r *Runner) Work(ctx context.Context, options WorkOptions) error {
	return r.work(ctx, options, nil)
}

// setQueues is admin.SetQueues.
func (r *Runner) setQueues(queues []jobs.QueueMax) error {
	if err := validQueueMax(queues); err != nil {
		return err
	}
	queues = slices.Clone(queues)

	r.mu.Lock()
	defer r.mu.Unlock()

	switch {
	case r.abort == nil:
		return fmt.Errorf("%w: Work is not running", jobs.ErrConflict)
	case r.engine == nil:
		r.queues = &queues // Work has just begun
	default:
		r.engine.SetQueues(queues)
	}

	return nil
}

// abortWork is admin.Abort.
func (r *Runner) abortWork() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abort != nil {
		r.abort()
	}
}

// workOne does what Work does, but for one task only, which it adds itself.
func (r *Runner) workOne(ctx context.Context, one db.OneTask) error {
	queues := []jobs.QueueMax{{Name: one.Spec.Queue, Max: 1}}
	return r.work(ctx, WorkOptions{Concurrency: 1, Queues: queues}, &one)
}

// work implements Work. With one, it adds that task and runs no other.
func (r *Runner) work(ctx context.Context, o WorkOptions, one *db.OneTask) error {
	o = o.withDefaults(r.options.Sync)
	if err := o.validate(r.options.WriteEvery); err != nil {
		return err
	}

	aborted, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()

	r.mu.Lock()
	if len(r.handlers) == 0 {
		r.mu.Unlock()
		return fmt.Errorf("%w: no job is registered", jobs.ErrInvalid)
	}
	if r.abort != nil {
		r.mu.Unlock()
		return fmt.Errorf("%w: Work is running already", jobs.ErrConflict)
	}
	if r.closed {
		r.mu.Unlock()
		return jobs.ErrClosed
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()

	r.abort, r.stop = abort, stop
	r.works.Add(1)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.abort, r.stop, r.engine, r.queues = nil, nil, nil, nil
		r.works.Done()
	}()

	// While r.abort is set, nobody changes the handlers, the middleware and the
	// functions of schedules: see beforeWork.
	e, err := r.newEngine(ctx, aborted.Done(), o, one)
	if e == nil && ctx.Err() != nil {
		return nil
	} else if e == nil {
		return err
	}

	r.mu.Lock()
	r.engine = e
	if r.queues != nil {
		e.SetQueues(*r.queues)
	}

	r.mu.Unlock()
	r.store.SetBrief(o.UntilEmpty)
	if one == nil {
		return e.Run(ctx, aborted)
	}

	added := r.addFor(e, one)
	if added != nil {
		stop() // Run then only signs the worker off
	}

	return cmp.Or(added, e.Run(ctx, aborted))
}

// mayWork returns an error if commands must not run, because a user other than
// the one who runs this process may write the database. It also returns an
// error if someone has added triggers or indexes to runner's own tables, or if
// a crash has left the file damaged.
func (r *Runner) mayWork(ctx context.Context, o *WorkOptions) error {
	if c := engine.CommandsOf(r.handlers[command.Job]); c != nil && !c.InsecurePerms {
		if err := db.Insecure(r.store.Path(), os.Geteuid()); err != nil {
			return err
		}
	}
	if !o.ForeignTriggers {
		if err := r.store.Foreign(ctx); err != nil {
			return err
		}
	}
	if r.store.Unclean() {
		return r.store.Damage(ctx)
	}

	return nil
}

const (
	firstStartPause = 20 * time.Millisecond // first pause between two attempts to start work on a full disk
	maxStartPause   = 2 * time.Second
)

// newEngine makes the engine for a call of Work. While the disk is full, it
// waits for free space.
func (r *Runner) newEngine(ctx context.Context, aborted <-chan struct{}, o WorkOptions, one *db.OneTask) (*engine.Engine, error) {
	if err := r.mayWork(ctx, &o); err != nil {
		return nil, err
	}

	options := engine.Options{Owner: r, Store: r.store, Log: r.log, Version: db.RunnerVersion, Handlers: r.wrapped(),
		PrepareTick: r.prepareTick, OnTick: r.onTick, WriteEvery: r.options.WriteEvery, WorkOptions: engine.WorkOptions(o)}
	if one != nil {
		options.Only, options.Stdin = -1, one.Stdin
	}

	for pause := firstStartPause; ; pause = min(2*pause, maxStartPause) {
		e, err := engine.New(ctx, options)
		if !errors.Is(err, jobs.ErrFull) {
			return e, err
		}
		if pause == firstStartPause {
			r.log.Error("the disk is full: no task starts until there is free space", "err", err)
		}

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-aborted:
			return nil, jobs.ErrShutdown
		case <-time.After(pause):
		}
	}
}
