package main

import (
	"context"
	"errors"

	"example.com/runner/internal/input"
	"example.com/runner/internal/output"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/commands"
)

// addAndWait adds the task, shows its output, and waits for its end. The error
// has the task's exit status.
func (o *enqueueOptions) addAndWait(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	ctx, release := ui.Until(ctx)
	defer release()

	to := &output.LogPrinter{P: p, Follow: true}
	shows := !p.JSON && !o.result
	var added jobs.Enqueued
	var err error
	if o.here {
		options := commands.Options{OwnProcess: true}
		if shows {
			options.Tee = to.Tee
		}
		r.Register(commands.Handler(options))
		var stop func()
		if added, ctx, stop, err = o.workHere(ctx, r); err == nil {
			defer stop()
		}
	} else {
		added, err = addOne(ctx, r, o.spec)
	}
	if err != nil {
		return sayIfStopped(p, err)
	}

	id := added.ID
	if err := to.Alone(func() error { return o.noteWait(ctx, r, to, added) }); err != nil {
		return err
	}

	ctx, stop := output.Limit(ctx, o.waitTimeout)
	defer stop()

	if shows {
		// Print all attempts of a new task: the first may have ended already.
		// Of an older task, print the latest attempt and those after it.
		which := output.Range{All: !added.Kept, Lines: -1}
		if err := output.Follow(ctx, r, []int64{id}, which, to); err != nil {
			return o.stopped(ctx, r, p, err, added)
		}
	}

	var end error
	err = output.Each(ctx, r, []int64{id}, func() { to.Obstacles.Look(ctx) }, func(t jobs.Task) (bool, error) {
		end = output.Finish(p, t)
		return false, ui.PrintEnd(p, t, o.result, input.EnqueuedRecord(t, added, p.Now()))
	})
	if err != nil {
		return o.stopped(ctx, r, p, err, added)
	}

	return to.Complete(end)
}

// noteWait says what the wait is for, and what may keep it from its end.
func (o *enqueueOptions) noteWait(ctx context.Context, r *runner.Runner, to *output.LogPrinter,
	added jobs.Enqueued) (err error) {
	p := to.P
	var state jobs.State // state of an older task with the unique key; empty for a new task
	if added.Kept {
		if o.stdin != nil {
			p.Say("task %d has this key: nothing reads stdin", added.ID)
		}
		state, err = noteKept(ctx, r, p, added.ID)
	} else {
		p.Note("task %d in %s", added.ID, o.spec.Queue)
		err = o.notePause(ctx, r, p)
	}
	if option := "--wait-timeout"; err == nil && !state.Finished() {
		if o.here {
			option = ""
		}
		to.Obstacles = output.NoteObstacles(ctx, r, p, []int64{added.ID}, option, o.here)
	}

	return err
}

// stopped returns the error to report when err ended a wait early. If this
// process added the task and runs it, a signal also cancels the task.
func (o *enqueueOptions) stopped(ctx context.Context, r *runner.Runner, p *ui.Printer, err error,
	added jobs.Enqueued) error {
	if s, ok := errors.AsType[ui.Received](err); ok && o.here && !added.Kept {
		if err := cancelHere(ctx, r, added.ID); err != nil {
			return err
		}
		return ui.ExitStatus(s.Status())
	}
	return output.Stopped(p, err, []int64{added.ID}, 1)
}
