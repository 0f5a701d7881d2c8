package main

import (
	"context"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// workHere adds the task and starts a worker in this process that runs only
// this task. The worker runs until the caller calls stop. If it fails, the
// returned context ends, and its cause is the worker's error.
func (o *enqueueOptions) workHere(ctx context.Context, r *runner.Runner) (
	added jobs.Enqueued, _ context.Context, stop func(), err error) {
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	waiting, fail := context.WithCancelCause(ctx)
	committed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)

		err := db.InsideOf(r).WorkOne(working, db.OneTask{Adding: ctx, Spec: o.spec, Stdin: o.stdin,
			Added: func(a jobs.Enqueued) {
				added = a
				close(committed)
			}})
		if err != nil {
			fail(err)
		}
	}()
	stop = func() {
		end()
		<-ended
		fail(nil)
	}

	select {
	case <-committed:
		return added, waiting, stop, nil
	case <-ended: // without a task, because AddAndWork runs until end is called
		stop()
		return added, ctx, nil, context.Cause(waiting)
	}
}

// cancelHere cancels the task of an interrupted runner run, and waits for its
// end.
func cancelHere(ctx context.Context, r *runner.Runner, id int64) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := r.Cancel(ctx, []int64{id}, runner.CancelOptions{}); err != nil {
		return err
	}
	_, err := r.Await(ctx, id)
	return err
}
