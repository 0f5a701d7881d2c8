package enqueue

import (
	"context"

	"example.com/runner/internal/admin"
	"example.com/runner/runner"
)

// workHere starts a worker in this process. The worker runs only the task with this id, and works until the caller calls stop. If the
// worker fails, workHere cancels the returned context with the error as the cause.
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

// cancelHere cancels the task of an interrupted run and waits for its end.
func cancelHere(ctx context.Context, r *runner.Runner, id int64) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := r.Cancel(ctx, []int64{id}, runner.CancelOptions{}); err != nil {
		return err
	}
	_, err := r.Await(ctx, id)
	return err
}
