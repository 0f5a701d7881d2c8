package main

import (
	"context"
	"errors"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/input"
	"example.com/runner/internal/output"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// add adds the task and prints its id.
func (o *enqueueOptions) add(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	one, err := addOne(ctx, r, o.spec)
	if err != nil {
		return err
	}
	if err := input.PrintEnqueued(ctx, r, p, []runner.Enqueued{one}, one.ID); err != nil {
		return err
	}
	if one.Kept {
		state, err := noteKept(ctx, r, p, one.ID)
		if err != nil || state.Finished() {
			return err
		}
		return output.NoteWorkers(ctx, r, p, o.service, "enqueue")
	}
	if one.Replaced {
		p.Note("task %d had this key and had not started: it is this one now; follow: runner logs -f %[1]d", one.ID)
	} else {
		p.Note("in %s; follow: runner logs -f %d", o.spec.Queue, one.ID)
	}
	if p.Interactive() && len(o.spec.After)+len(o.spec.AfterAny) > 0 {
		t, err := r.Get(ctx, one.ID)
		if err != nil {
			return err
		}
		if t.Reason == jobs.ReasonDependency {
			p.Note("cancelled: %s", t.Error)
		}
	}
	if err := o.notePause(ctx, r, p); err != nil {
		return err
	}
	return output.NoteWorkers(ctx, r, p, o.service, "enqueue")
}

// addMany adds a task for each line of a batch. With --wait it waits for them.
func (o *enqueueOptions) addMany(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	b, err := input.Open(p, input.Options{File: o.file, Each: o.each, Stdin: o.lines, Base: o.spec, Caller: o.caller})
	if err != nil {
		return err
	}
	defer b.Close()
	if o.wait {
		var stop func()
		ctx, stop = ui.Until(ctx)
		defer stop()
	}
	added, err := b.Add(ctx, r)
	if err != nil || len(added) == 0 {
		return sayIfStopped(p, err)
	}
	if err := b.Print(ctx, r, added, !o.wait); err != nil { // a wait prints the records at the end
		return err
	}
	if id := input.ID(added); p.Interactive() && id != 0 && !o.wait {
		p.Note("batch %d has %s; follow: runner wait --batch %[1]d", id, humanize.Plural(len(added), "task"))
	}
	if err := o.notePause(ctx, r, p); err != nil {
		return err
	}
	if !o.wait {
		return output.NoteWorkers(ctx, r, p, o.service, "enqueue")
	}
	return input.Wait(ctx, r, p, added, o.waitTimeout)
}

// sayIfStopped returns the error of an enqueue: the exit status of a signal if
// one came before the tasks were added.
func sayIfStopped(p *ui.Printer, err error) error {
	if s, ok := errors.AsType[ui.Received](err); ok {
		p.Say("nothing was enqueued")
		return ui.ExitStatus(s.Status())
	}
	return err
}

func addOne(ctx context.Context, r *runner.Runner, spec jobs.Spec) (runner.Enqueued, error) {
	added, err := r.Add(ctx, spec)
	if err != nil {
		return runner.Enqueued{}, err
	}
	return added[0], nil
}

// noteKept says on stderr that nothing was added, because task id holds the
// unique key, and why it still does. It returns the state of that task.
func noteKept(ctx context.Context, r *runner.Runner, p *ui.Printer, id int64) (jobs.State, error) {
	say := p.Tell // the record has the key "enqueued"
	t, err := r.Get(ctx, id)
	until := t.CreatedAt.Add(t.UniqueFor)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		say("task %d was deleted, but holds this key for its --unique-for: nothing was added", id)
		return "", nil
	case err != nil:
		return "", err
	case !t.State.Finished():
		say("task %d has this key and is unfinished: nothing was added; follow: runner logs -f %[1]d", id)
	case until.After(p.Now()):
		say("task %d has %s and holds this key until %s: nothing was added; details: runner show %[1]d", id, t.State,
			humanize.Clock(until, p.Now()))
	default:
		say("task %d has %s and holds this key: nothing was added; details: runner show %[1]d", id, t.State)
	}
	return t.State, nil
}

// notePause says on a terminal that the queue is paused.
func (o *enqueueOptions) notePause(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	if !p.Interactive() {
		return nil
	}
	pauses, err := r.Pauses(ctx)
	if pause, ok := pauses.Of(o.spec.Queue); ok {
		what := "queue " + o.spec.Queue + " is"
		if pause != pauses[o.spec.Queue] {
			what = "all queues are"
		}
		p.Note("%s paused by %s; details: runner status", what, pause.By)
	}
	return err
}

// addAndWait adds the task, shows its output, and waits for its end. The error that it returns contains the exit status of the task.
func (o *enqueueOptions) addAndWait(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	ctx, release := ui.Until(ctx)
	defer release()
	to := &output.LogPrinter{P: p, Follow: true}
	shows := !p.JSON && !o.result
	var added runner.Enqueued
	var err error
	if o.here {
		commands := runner.CommandOptions{}
		if shows {
			commands.Tee = to.Tee
		}
		r.Register(runner.Commands(commands))
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
		// Print all attempts of a new task, because the first one may already have ended. Of an older task, print the latest attempt and
		// those after it.
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
func (o *enqueueOptions) noteWait(ctx context.Context, r *runner.Runner, to *output.LogPrinter, added runner.Enqueued) (err error) {
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

// stopped handles a wait that ended early because of err, and returns the error to report. If this process added the task and runs it
// itself, a signal also cancels the task.
func (o *enqueueOptions) stopped(ctx context.Context, r *runner.Runner, p *ui.Printer, err error, added runner.Enqueued) error {
	if s, ok := errors.AsType[ui.Received](err); ok && o.here && !added.Kept {
		if err := cancelHere(ctx, r, added.ID); err != nil {
			return err
		}
		return ui.ExitStatus(s.Status())
	}
	return output.Stopped(p, err, []int64{added.ID}, 1)
}
