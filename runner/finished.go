package runner

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

const (
	cursorLease = 30 * time.Second       // how long a process owns a cursor if it does not renew its lease
	endWait     = 200 * time.Millisecond // time for the last writes to a cursor after the context has ended
	cursorBatch = 100                    // number of finished tasks that ConsumeFinished reads at once

	firstHandlePause = time.Second // pause after the first failed call of handle for a task
	maxHandlePause   = time.Minute
	firstRetryPause  = 20 * time.Millisecond // first pause after an error of the database
	maxRetryPause    = 2 * time.Second
)

// ConsumeFinished calls handle for each task that finishes, in the order in
// which the tasks finish. It covers every job, queue and process. It also
// covers tasks that finish without an attempt: because their worker died, they
// expired, a dependency failed, or a person cancelled them. The task has its
// final State, Reason and Error. If a finished task is retried, ConsumeFinished
// calls handle again when the task has finished again.
//
// The cursor is a name of up to 200 bytes. The first call with a name stores
// the cursor in the database and begins with the next task that finishes. A
// program that calls ConsumeFinished in a goroutine cannot know when the cursor
// is stored. So call admin.AddCursor first. When it returns, the cursor is
// stored, and ConsumeFinished misses no task that finishes later. Later calls
// of ConsumeFinished continue after the last task for which handle returned
// nil, also in another process and after a restart. ConsumeFinished may call
// handle more than once for the same end of a task. The pair of Task.ID and
// Task.GenerationID identifies the end, so handle can detect a repeated call.
// If handle returns an error or panics, ConsumeFinished logs a warning and
// calls handle again for the same task after 1 s. After each further error the
// pause doubles, up to one minute. The cursor does not move past this task
// before handle returns nil, so let handle return nil for a task that it can
// never accept.
//
// Several processes may call ConsumeFinished with the same cursor. Only one of
// them calls handle. When ConsumeFinished returns in that process, another
// process takes over. If that process dies, another process takes over after 30
// s. If a process is suspended for longer than 30 s during a call of handle,
// another process may handle the same task meanwhile; the context of the
// suspended call then ends with the cause jobs.ErrLost. Different cursors do
// not affect each other.
//
// The database keeps a record of each finished task until all cursors have
// passed it, so remove a cursor that is no longer used with admin.RemoveCursor.
// If a task is deleted before handle gets it, handle gets a Task with the ID,
// Job, Queue, Label, Schedule, outcome and times, but without Args and Result.
// A database without a cursor stores no such records.
//
// ConsumeFinished blocks until ctx ends and then returns context.Cause(ctx). It
// returns jobs.ErrClosed after Close, jobs.ErrNotFound after
// admin.RemoveCursor, jobs.ErrInvalid for an invalid name, and another error
// when the database can no longer be used.
func (r *Runner) ConsumeFinished(ctx context.Context, cursor string, handle func(ctx context.Context, task jobs.Task) error) error {
	if handle == nil {
		return invalidValue("a function that handles a task", "the function handle is nil")
	}
	if err := taskspec.ValidCursor(cursor); err != nil {
		return err
	}

	notices, stop := r.store.Subscribe(ctx)
	defer stop()

	c := &consumer{r: r, cursor: cursor, owner: db.NewWorkerID(), handle: handle}
	again := false // whether an unexpected error came after the last success; another one then ends ConsumeFinished
	var pause time.Duration
	for {
		err := c.deliver(ctx)
		failed, handling := errors.AsType[*handleError](err)
		wait, wake := time.Second, notices
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			pause, again = 0, false
		case handling:
			pause = min(max(2*pause, firstHandlePause), maxHandlePause)
			wait, wake = pause, nil
			args := []any{"cursor", cursor, "task", failed.task, "next", pause}
			r.log.Warn("a handler of ends failed, will try again", append(args, usercode.LogArgs(failed.err)...)...)
		case errors.Is(err, sql.ErrNoRows):
			return db.NoCursor(cursor)
		case errors.Is(err, jobs.ErrBusy), errors.Is(err, jobs.ErrFull), errors.Is(err, jobs.ErrUnknown), errors.Is(err, jobs.ErrLost):
			pause = min(max(2*pause, firstRetryPause), maxRetryPause)
			wait, wake = pause, nil
		case again || errors.Is(err, jobs.ErrClosed) || errors.Is(err, jobs.ErrReplaced):
			return err
		default:
			again, wait, wake = true, maxRetryPause, nil
			r.log.Error("cannot deliver ends, will try once more", "cursor", cursor, "err", err)
		}

		if gone := r.store.Replaced(); gone != nil {
			return gone
		}
		if err := r.wait(ctx, wake, wait); err != nil {
			return err
		}
	}
}

// consumer is one call of ConsumeFinished.
type consumer struct {
	r      *Runner
	cursor string
	owner  string // random id of this consumer
	made   bool   // whether the cursor is stored
	handle func(context.Context, jobs.Task) error
}

// handleError is what handle has returned.
type handleError struct {
	task int64
	err  error
}

func (e *handleError) Error() string { return e.err.Error() }

// deliver calls handle for all finished tasks that the cursor has not passed,
// unless another process owns the cursor.
func (c *consumer) deliver(ctx context.Context) error {
	store := c.r.store
	if !c.made {
		if err := store.MakeCursor(ctx, c.cursor, now()); err != nil {
			return err
		}
		c.made = true
	}

	for {
		waits, err := store.CursorWaits(ctx, c.cursor, c.owner, now())
		if err != nil || !waits {
			return err
		}

		seq, err := store.TakeCursor(ctx, c.cursor, c.owner, cursorLease, now())
		if errors.Is(err, sql.ErrNoRows) {
			return nil // another process owns the cursor, or the cursor was removed; the next call of CursorWaits detects both cases
		}
		if err != nil {
			return err
		}
		if err := c.batch(ctx, seq); err != nil {
			return err
		}
	}
}

// batch calls handle for the next finished tasks, those after seq. The consumer
// owns the cursor when batch begins, and not when it returns.
func (c *consumer) batch(ctx context.Context, seq int64) error {
	store := c.r.store
	write, cancel := engine.Outlive(ctx, endWait)
	defer cancel()

	handling, lost := context.WithCancelCause(ctx)
	defer lost(nil)

	renewing, stop := context.WithCancel(handling)
	var renewal sync.WaitGroup
	renewal.Go(func() { c.renew(renewing, lost) })
	defer func() {
		stop()
		renewal.Wait()                                 // a renewal after FreeCursor would take the cursor again
		_ = store.FreeCursor(write, c.cursor, c.owner) // if this fails, the cursor is free when its lease ends
	}()

	ends, err := store.EndsAfter(ctx, seq, cursorBatch)
	if err != nil {
		return err
	}

	for _, end := range ends {
		err := c.call(handling, end.Task)
		if handling.Err() != nil && ctx.Err() == nil {
			return context.Cause(handling)
		}
		if err != nil {
			return &handleError{end.Task.ID, err}
		}
		if err := store.MoveCursor(write, c.cursor, c.owner, end.Seq); err != nil || ctx.Err() != nil {
			return err
		}
	}

	return nil
}

// call calls the program's function. Its error and its panic become a Panic or
// an error without methods of the program.
func (c *consumer) call(ctx context.Context, task jobs.Task) (err error) {
	if p := usercode.Call(func() { err = c.handle(ctx, task) }); p != nil {
		return p
	}
	return usercode.Flat("the function handle", err)
}

// renew renews the cursor's lease until ctx ends. If no renewal succeeds for
// too long, it calls lost with jobs.ErrLost.
func (c *consumer) renew(ctx context.Context, lost context.CancelCauseFunc) {
	ticker := time.NewTicker(cursorLease / 6)
	defer ticker.Stop()

	renewed := now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}

		at := now()
		_, err := c.r.store.TakeCursor(ctx, c.cursor, c.owner, cursorLease, at)
		switch {
		case err == nil:
			renewed = at
		case errors.Is(err, sql.ErrNoRows), now().Sub(renewed) >= cursorLease*2/3:
			lost(jobs.ErrLost)
			return
		}
	}
}
