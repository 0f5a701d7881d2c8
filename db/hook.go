package db

import (
	"bytes"
	"slices"
	"time"

	"example.com/runner/internal/lifecycle"
	"example.com/runner/internal/lines"
	"example.com/runner/jobs"
)

// A hook is a command that runs because a task has ended. It is a task of its own, which the transaction of that end enqueues. So a hook is
// neither lost in a crash nor enqueued twice. The hooks of a task come from its options; the worker has commands for tasks without hooks.
// A task without hooks costs no statement.

// hooksFor returns the hooks of a task, with the defaults of the worker that writes the end.
func (t *tx) hooksFor(task *jobs.Task) jobs.Hooks { return lifecycle.WithDefaults(task.Hooks, t.hooks) }

// addHooks enqueues the hooks of a task after one of its attempts has ended with the change c.
func (t *tx) addHooks(f *Finish, c lifecycle.Change, now time.Time) error {
	hooks := t.hooksFor(&f.Task)
	list := lifecycle.HooksOf(&f.Task, &hooks, &f.Outcome, c.State)
	if len(list) == 0 {
		return nil
	}
	claim := ClaimID{ID: f.Task.ID, GenerationID: f.Task.GenerationID}
	if f.revoked {
		claim.GenerationID--
	}
	output, err := t.lastLines(claim)
	if err != nil {
		return err
	}
	for _, hook := range list {
		spec := lifecycle.HookSpec(hook, f.Task, f.Outcome, c, output)
		if err := t.addHook(&spec, now); err != nil {
			return err
		}
	}
	return nil
}

// addHook enqueues the task of a hook. It does not ask whether the disk has room: otherwise a disk that is nearly full would prevent the
// end of a task, and the message about it.
func (t *tx) addHook(spec *jobs.Spec, now time.Time) error {
	task := lifecycle.NewTask(spec, now)
	id, err := t.insert(&task, settings{})
	if err == nil && len(spec.Input) > 0 {
		err = t.run(insertInput, id, spec.Input)
	}
	t.moved = true // the next claim looks at the queue of the hook
	return err
}

// lastLines returns the last lines of the output of an attempt.
func (t *tx) lastLines(claim ClaimID) ([]byte, error) {
	var rows []outputRow
	// The last chunks have enough lines, or enough bytes, for a hook.
	if err := t.list(&rows, selectLastOutput, claim.ID, claim.GenerationID, lifecycle.HookLines+4); err != nil {
		return nil, err
	}
	chunks := make([]jobs.Chunk, len(rows))
	for i := range rows {
		chunks[i] = rows[i].chunk()
	}
	slices.Reverse(chunks)
	last, _ := lines.Last(chunks, lifecycle.HookLines)
	var text bytes.Buffer
	for _, c := range last {
		text.Write(c.Data)
	}
	return text.Bytes(), nil
}
