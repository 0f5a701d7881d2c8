package input

import (
	"encoding/json"
	"fmt"
	"time"

	"example.com/runner/internal/ops"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// ReadSchedule parses a schedule as runner schedule list --json prints it. Keys
// that report what the schedule has done are ignored. Missing keys get their
// defaults. The result is not validated.
func ReadSchedule(text []byte, caller ops.Invocation) (s jobs.Schedule, err error) {
	v, err := newValues(text, keysOf(ui.NewFullSchedule(jobs.Schedule{}, time.Time{}, false, nil), "applied"))
	if err != nil {
		return s, err
	}

	paused := taskspec.Flag(false)
	v.text("name", &s.Name)
	v.text("cron", &s.Cron)
	v.text("zone", &s.Zone)
	v.text("overlap", (*string)(&s.Overlap))
	v.text("catch_up", (*string)(&s.CatchUp))
	v.read("paused", &paused)
	v.read("on_tick", (*taskspec.Flag)(&s.OnTick))
	v.read("catch_up_window", (*taskspec.Duration)(&s.CatchUpWindow))
	v.read("jitter", (*taskspec.Duration)(&s.Jitter))
	v.read("alert_after", (*taskspec.Duration)(&s.AlertAfter))
	for _, key := range []string{"name", "cron", "task"} {
		if v.err == nil && !v.has(key) {
			v.err = fmt.Errorf("%s is missing", key)
		}
	}

	if v.err != nil {
		return s, v.err
	}
	if paused {
		s.PausedAt = time.Unix(0, 0) // a time that is not zero marks the schedule as paused; ApplySchedules replaces it by the current time
	}

	s.Spec, err = readScheduleTask(v.members["task"], caller)
	if err != nil {
		return s, fmt.Errorf("task: %w", err)
	}

	return s, nil
}

// readScheduleTask parses a task like a line of --batch. A path or cwd of null
// leaves the choice to the worker; without the key, this process looks up the
// program, or gives its directory.
func readScheduleTask(text json.RawMessage, caller ops.Invocation) (s jobs.Spec, err error) {
	v, err := newValues(text, lineKeys())
	if err != nil {
		return s, err
	}

	base := jobs.Command(command.Command{})
	base.Args, base.Err = nil, nil
	if v.members["cwd"] == nil {
		base.Cwd = caller.Dir
	}

	caller.Elsewhere = v.members["path"] != nil
	s, names, err := newLineReader(base, caller).build(v)
	if err == nil && len(names.after)+len(names.afterAny) > 0 {
		err = &jobs.FieldError{Field: "after", Msg: "the task of a schedule waits for no others"}
	}

	return s, err
}
