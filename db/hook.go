package db

import (
	"bytes"
	"context"
	"math"
	"slices"
	"time"

	"example.com/runner/internal/lifecycle"
	"example.com/runner/internal/lines"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A hook is a command that runs because a task has ended. It is a task of its own. The transaction that ends the first task also enqueues
// the hook, so the hook is neither lost in a crash nor enqueued twice. The hooks of a task come from its options. If the options have no
// hook for an event, the hook of the queue applies. If the queue has none, the hook of the worker applies. The end of a task without hooks
// needs no further statement.

// selectQueueHooks reads the hooks of queue [1]. selectAllQueueHooks reads the hooks of all queues.
var (
	selectQueueHooks    = query(`SELECT hooks FROM {queue_hooks} WHERE queue = ?`)
	selectAllQueueHooks = query(`SELECT queue, hooks FROM {queue_hooks} ORDER BY queue`)
)

// setQueueHooks sets the hooks of queue [1]. deleteQueueHooks removes them.
var (
	setQueueHooks    = command(`INSERT INTO {queue_hooks} (queue, hooks) VALUES (?, ?)`)
	deleteQueueHooks = command(`DELETE FROM {queue_hooks} WHERE queue = ?`)
)

// openFailure records at time [2] that the last task of subject [1] failed. A subject is a schedule or a unique key (see
// lifecycle.Subject). closeFailure deletes this record. pruneFailures deletes the records of failures before [1].
var (
	openFailure = command(`INSERT INTO {open_failures} (subject, failed_at) VALUES (?, ?)
ON CONFLICT (subject) DO UPDATE SET failed_at = excluded.failed_at`)
	closeFailure  = command(`DELETE FROM {open_failures} WHERE subject = ?`)
	pruneFailures = command(`DELETE FROM {open_failures} WHERE failed_at < ?`)
)

// hooksFor returns the hooks of a task. The parameter "own" has the hooks from the options of the task. If it has no hook for an event, the
// hook of the queue applies. If the queue has none, the hook of the worker that writes the end applies.
func (t *tx) hooksFor(own jobs.Hooks, queue string) (jobs.Hooks, error) {
	features, err := t.features()
	if err != nil {
		return own, err
	}
	if features.hooks {
		var stored []string
		if err := t.list(&stored, selectQueueHooks, queue); err != nil {
			return own, err
		}
		for _, text := range stored {
			own = lifecycle.WithDefaults(own, taskspec.DecodeOptions([]byte(text)).Hooks)
		}
	}
	return lifecycle.WithDefaults(own, t.hooks), nil
}

// addHooks enqueues the hooks of a task after one of its attempts has ended with the change c.
func (t *tx) addHooks(f *Finish, c lifecycle.Change, now time.Time) error {
	if f.Task.Event != "" || c.State != jobs.Failed && c.State != jobs.Completed {
		return nil
	}
	hooks, err := t.hooksFor(f.Task.Hooks, f.Task.Queue)
	if err != nil {
		return err
	}
	if subject := lifecycle.Subject(&f.Task); hooks.OnRecovery != "" && subject != "" {
		if c.State == jobs.Failed {
			err = t.run(openFailure, subject, now.UnixMilli())
		} else if n, closed := t.exec(closeFailure, subject); n == 0 {
			hooks.OnRecovery, err = "", closed
		}
		if err != nil {
			return err
		}
	}
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

// addQueueHooks does the same as addHooks for an attempt whose completion shares a statement with other completions. The task of such an
// attempt has no hooks of its own, but its queue may have hooks.
func (t *tx) addQueueHooks(f *Finish, c lifecycle.Change, now time.Time) error {
	if features, err := t.features(); err != nil || !features.hooks {
		return err
	}
	return t.addHooks(f, c, now)
}

// addHook enqueues the task of a hook. It does not check the free space of the disk: even if the disk is nearly full, a task must be able
// to end, and its hook must be able to report the end.
func (t *tx) addHook(spec *jobs.Spec, now time.Time) error {
	task := lifecycle.NewTask(spec, now)
	id, err := t.insert(&task, settings{})
	if err == nil && len(spec.Input) > 0 {
		err = t.run(insertInput, id, spec.Input)
	}
	t.released = true // the queue of the hook has a new task, so the worker must list the queues again
	return err
}

// lastLines returns the last lines of the output of an attempt.
func (t *tx) lastLines(claim ClaimID) ([]byte, error) {
	var rows []outputRow
	// A hook gets at most 50 lines of output. Most stored chunks of output have at least one whole line, so 54 chunks are
	// usually enough.
	if err := t.list(&rows, selectLastOutput, claim.ID, claim.GenerationID, int64(math.MaxInt64), lifecycle.HookLines+4); err != nil {
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

// SetQueueHooks sets the hooks of a queue. Each hook applies to those tasks of the queue that have no hook of their own for the same event.
// If the hooks are empty, the queue has none afterwards. SetQueueHooks reports whether the queue had hooks before.
func (d *DB) SetQueueHooks(ctx context.Context, queue string, h jobs.Hooks) (had bool, err error) {
	options := jobs.NewSpec("").Options
	options.Hooks = h
	text, err := taskspec.EncodeOptions(&options)
	if err != nil {
		return false, err
	}
	return updateAs(ctx, d, full, func(t *tx) (bool, error) {
		t.used.known = false
		n, err := t.exec(deleteQueueHooks, queue)
		if err == nil && len(text) > 0 {
			err = t.run(setQueueHooks, queue, string(text))
		}
		return n > 0, err
	})
}

// QueueHooks returns the hooks of all queues that have some.
func (d *DB) QueueHooks(ctx context.Context) (map[string]jobs.Hooks, error) {
	rows, err := readRows[struct {
		Queue string `db:"queue"`
		Hooks string `db:"hooks"`
	}](ctx, d, selectAllQueueHooks)
	hooks := make(map[string]jobs.Hooks, len(rows))
	for _, r := range rows {
		hooks[r.Queue] = taskspec.DecodeOptions([]byte(r.Hooks)).Hooks
	}
	return hooks, err
}
