package ui

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/orphans"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/admin"
)

// NewTask returns a task's record. A running task's duration is the time from
// its start to now. It names the variables in env, but Reveal adds their
// values.
func NewTask(t jobs.Task, now time.Time) Record {
	r := make(Record, 0, 80).With("id", t.ID, "job", t.Job, "args", Raw(t.Args), "label", Known(t.Label),
		"queue", t.Queue, "state", t.State, "reason", Known(t.Reason), "priority", t.Priority,
		"lane", Known(t.Lane), "unique_key", Known(t.UniqueKey), "unique_global", taskspec.SpecOf(&t).Unique.Global,
		"after", append([]int64{}, t.DependsOn...), "after_any", append([]int64{}, t.DependsOnAny...),
		"schedule", Known(t.Schedule), "batch", Known(t.Batch),
		"run_at", Stamp(t.RunAt), "expires_at", Stamp(t.ExpiresAt),
		"attempt", t.Attempt, "max_attempts", Known(t.MaxAttempts),
		"losses", t.Losses, "max_losses", t.MaxLosses)
	spec := jobs.Spec{Options: t.Options}
	for _, o := range taskspec.Options {
		if o.Stored() {
			r = withOption(r, o, &spec)
		}
	}

	return r.With("input_bytes", t.InputBytes, "generation_id", t.GenerationID,
		"worker_id", Known(t.WorkerID), "worker", Known(t.Worker),
		"lease_expires_at", Stamp(t.LeaseExpiresAt), "cancel_requested_at", Stamp(t.CancelRequestedAt),
		"paused_at", Stamp(t.PausedAt), "paused_by", Known(t.PausedBy), "paused_reason", Known(t.PausedReason),
		"created_at", Stamp(t.CreatedAt), "created_by", Known(t.CreatedBy), "updated_at", Stamp(t.UpdatedAt),
		"started_at", Stamp(t.StartedAt), "finished_at", Stamp(t.FinishedAt), "duration", durationOf(t, now),
		"result", Raw(t.Result), "error", Known(t.Error), "error_line", Known(t.ErrorLine),
		"exit_code", t.ExitCode, "signal", Known(t.Signal),
		"output_bytes", t.OutputBytes, "output_truncated", t.OutputTruncated,
		"children_killed", t.ChildrenKilled, "children_left", t.ChildrenLeft).
		With(usage(t.Usage)...).
		With("progress", Raw(taskspec.ProgressJSON(t.Progress)))
}

// withOption adds a task option. If zero means "not set", it becomes null.
func withOption(r Record, o *taskspec.OptionInfo, s *jobs.Spec) Record {
	value := any(o.Field(s))
	if texts, ok := value.(*taskspec.Texts); ok && o.Secret {
		value = hidden(*texts)
	}
	if o.Zero != "" && o.IsDefault(s) {
		value = nil
	}
	return r.With(o.Key, value)
}

// durationOf returns how long the current or last attempt has run, or nil if
// the task has never started.
func durationOf(t jobs.Task, now time.Time) any {
	if d, ok := Lasted(t, now); ok {
		return Seconds(d)
	}
	return nil
}

// Reveal returns the record with the data for --reveal: the values of the
// variables in env, and the input as base64.
func Reveal(r Record, env map[string]string, input []byte) Record {
	r[r.index("env")].Value = (*taskspec.Texts)(&env)
	return r.With("input", input)
}

// These are the values of the key enqueued in the records of runner enqueue.
const (
	WasCreated  = "created"
	WasKept     = "kept"     // nothing was added, because an older task has the unique key
	WasReplaced = "replaced" // the task replaced an older task that had the unique key and had not started
)

// NewProcess returns the record of a process that outlives its attempt.
func NewProcess(p orphans.Process) Record {
	return NewRecord("pid", p.PID, "name", p.Name, "state", p.State, "uid", p.UID)
}

// NewDependency returns the record of a task that another one waits for. The
// state of a deleted task is null.
func NewDependency(d admin.Dependency) Record {
	return NewRecord("id", d.ID, "any", d.Any, "state", Known(d.State))
}

// NewTaskChange returns the record of a change that a user has made to a task.
func NewTaskChange(c db.TaskChange, now time.Time) Record {
	return NewRecord(
		Member{Key: "at", Value: Stamp(c.At), Name: "  CHANGED", Text: "  " + humanize.Clock(c.At, now)},
		Member{Key: "by", Value: Known(c.By), Name: "BY", Drop: 1},
		Member{Key: "action", Value: c.Action, Name: "ACTION"},
		Member{Key: "text", Value: Known(c.Text), Name: Untitled})
}

// NewAttempt returns an attempt's record.
func NewAttempt(a admin.Attempt) Record {
	return NewRecord("task_id", a.TaskID, "attempt", a.Number, "generation_id", a.GenerationID,
		"state", a.State, "reason", Known(a.Reason), "counted", a.Counted,
		"worker_id", Known(a.WorkerID), "worker", Known(a.Worker),
		"started_at", Stamp(a.StartedAt), "finished_at", Stamp(a.FinishedAt), "duration", Seconds(a.Duration),
		"exit_code", a.ExitCode, "signal", Known(a.Signal), "error", Known(a.Error),
		"output_bytes", a.OutputBytes, "output_truncated", a.OutputTruncated,
		"children_killed", a.ChildrenKilled, "children_left", a.ChildrenLeft).
		With(usage(a.Usage)...).
		With("error_line", Known(a.ErrorLine))
}

// usage returns the keys about what a command used; null if that's unknown.
func usage(u command.Usage) []any {
	values := []any{Seconds(u.User), Seconds(u.System), u.MaxRSS, u.Read, u.Written}
	if u == (command.Usage{}) {
		values = make([]any, len(values))
	}
	return []any{"user_time", values[0], "system_time", values[1], "max_rss", values[2], "read_bytes", values[3],
		"written_bytes", values[4]}
}

// NewStep returns the record of a finished step, or of a sleep.
func NewStep(s admin.Step, now time.Time) Record {
	value := compact(s.Value)
	switch {
	case s.WakeAt.After(now):
		value = "sleeps until " + humanize.Clock(s.WakeAt, now)
	case s.Slept():
		value = "slept until " + humanize.Clock(s.WakeAt, now)
	}

	return NewRecord(
		Member{Key: "name", Value: s.Name, Name: "  STEP", Text: "  " + s.Name},
		"generation_id", s.GenerationID,
		Member{Key: "at", Value: Stamp(s.At), Name: "AT", Text: humanize.Clock(s.At, now), Drop: 1},
		"wake_at", Stamp(s.WakeAt),
		Member{Key: "value", Value: Raw(s.Value), Name: "VALUE", Text: value})
}

// NewChunk returns the record of a piece of output. Data that isn't UTF-8 is in
// base64, because JSON can't hold it.
func NewChunk(c admin.Chunk) Record {
	data, encoding := string(c.Data), "utf-8"
	if !utf8.Valid(c.Data) {
		data, encoding = base64.StdEncoding.EncodeToString(c.Data), "base64"
	}
	return NewRecord("task_id", c.TaskID, "attempt", c.Attempt, "generation_id", c.GenerationID, "seq", c.Seq,
		"stream", c.Stream, "at", Stamp(c.At), "data", data, "encoding", encoding, "dropped_bytes", c.DroppedBytes)
}

// These functions return the records of commands that say what they did.

// Deleted is for "runner delete".
func Deleted(id int64, deleted bool) Record { return NewRecord("id", id, "deleted", deleted) }

// RemovedSchedule is for "schedule remove".
func RemovedSchedule(name string) Record { return NewRecord("name", name, "removed", true) }

// RemovedLimit is for "limit remove".
func RemovedLimit(target admin.Target) Record {
	return NewRecord("target", target.String(), "removed", true)
}

// Backup is for "runner backup".
func Backup(file string, bytes int64) Record {
	return NewRecord("file", file, "bytes", bytes)
}

// Restore is for "runner restore".
func Restore(database string, bytes int64, kept string) Record {
	return NewRecord("database", database, "bytes", bytes, "kept", Known(kept))
}

// Service is for "service install".
func Service(unit, file string, changed bool, database string) Record {
	return NewRecord("unit", unit, "file", file, "changed", changed, "database", database)
}

// RemovedService is for "service uninstall".
func RemovedService(unit, file string, removed bool) Record {
	return NewRecord("unit", unit, "file", file, "removed", removed)
}

// Moved is for each table that "runner move" has copied.
func Moved(table string, rows int64) Record { return NewRecord("table", table, "rows", rows) }

// Fence is for "runner fence".
func Fence(task, generation int64, owns bool) Record {
	return NewRecord("task_id", task, "generation_id", generation, "owns", owns)
}

// Serve is for "runner serve".
func Serve(url, tokenFile string) Record {
	return NewRecord("url", url, "token_file", Known(tokenFile))
}

// Check is for each check of "runner doctor".
func Check(check, status, message, try string) Record {
	return NewRecord("check", check, "status", status, "message", message, "try", Known(try))
}
