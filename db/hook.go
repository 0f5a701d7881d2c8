package db

import (
	"bytes"
	"math"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A hook is a command that runs because a task has ended. It's a task of its
// own, and the transaction that ends the first task enqueues it: it's neither
// lost in a crash nor enqueued twice. The hooks come from the options of the
// task, and for an event without one from the worker. Without hooks, an end
// needs no further statement.

// openFailure records at time [2] that the last task of subject [1] failed: a
// schedule or a unique key (see taskspec.Subject). closeFailure deletes this
// record, and pruneFailures those from before [1].
var (
	openFailure = command(`INSERT INTO {open_failures} (subject, failed_at) VALUES (?, ?)
ON CONFLICT (subject) DO UPDATE SET failed_at = excluded.failed_at`)
	closeFailure  = command(`DELETE FROM {open_failures} WHERE subject = ?`)
	pruneFailures = command(`DELETE FROM {open_failures} WHERE failed_at < ?`)
)

// addHooks enqueues the hooks of a task whose attempt has ended with the change
// c.
func (t *tx) addHooks(f *Finish, c taskspec.Change, now time.Time) error {
	if f.Task.Event != "" || c.State != jobs.Failed && c.State != jobs.Completed {
		return nil
	}

	hooks := taskspec.HooksWithDefaults(f.Task.Hooks, t.hooks)
	if subject := taskspec.Subject(&f.Task); hooks.OnRecovery != "" && subject != "" {
		var err error
		if c.State == jobs.Failed {
			err = t.run(openFailure, subject, now.UnixMilli())
		} else if n, closed := t.exec(closeFailure, subject); n == 0 {
			hooks.OnRecovery, err = "", closed
		}
		if err != nil {
			return err
		}
	}

	list := taskspec.HooksOf(&f.Task, &hooks, &f.Outcome, c.State)
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
		spec := taskspec.HookSpec(hook, f.Task, f.Outcome, c, output)
		if err := t.addHook(&spec, now); err != nil {
			return err
		}
	}

	return nil
}

// addHook enqueues the task of a hook. It doesn't check the free space: even on
// a disk that is nearly full, a task must be able to end, and its hook to
// report the end.
func (t *tx) addHook(spec *jobs.Spec, now time.Time) error {
	task := taskspec.NewTask(spec, now)
	id, err := t.insert(&task, settings{})
	if err == nil && len(spec.Input) > 0 {
		err = t.run(insertInput, id, spec.Input)
	}
	t.released = true // the queue of the hook has a new task, so the worker must list the queues again
	return err
}

// lastLines returns the last lines of the output of an attempt. A hook gets at
// most 50. Most chunks have at least one whole line, so 54 are usually enough.
func (t *tx) lastLines(claim ClaimID) ([]byte, error) {
	var rows []outputRow
	if err := t.list(&rows, selectLastOutput, claim.ID, claim.GenerationID, int64(math.MaxInt64), taskspec.HookLines+4); err != nil {
		return nil, err
	}

	chunks := make([]Chunk, len(rows))
	for i := range rows {
		chunks[i] = rows[i].chunk()
	}

	slices.Reverse(chunks)
	last, _ := LastLines(chunks, taskspec.HookLines)
	var text bytes.Buffer
	for _, c := range last {
		text.Write(c.Data)
	}

	return text.Bytes(), nil
}
