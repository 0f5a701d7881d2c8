package enqueue

import (
	"context"

	"example.com/runner/internal/admin"
	"example.com/runner/runner"
)

// workHere starts a worker that runs only the task with this id, in this process. The worker runs until the caller calls stop. If the
// worker fails, the returned context ends, and its cause is the error of the worker.
func workHere(ctx context.Context, r *runner.Runner, id int64) (_ context.Context, stop func()) {
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	ctx, fail := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := admin.WorkOnly(working, r, id); err != nil {
			fail(err)
		}
	}()
	return ctx, func() {
		end()
		<-ended
		fail(nil)
	}
}

// cancelHere cancels the task of an interrupted "runner run" and waits until the task has ended.
func cancelHere(ctx context.Context, r *runner.Runner, id int64) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := r.Cancel(ctx, []int64{id}, runner.CancelOptions{}); err != nil {
		return err
	}
	_, err := r.Await(ctx, id)
	return err
}
