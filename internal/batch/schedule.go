package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/invocation"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// scheduleKeys lists the keys that define a schedule. scheduleOtherKey lists the keys that report what the schedule has done. ReadSchedule
// ignores the keys in scheduleOtherKey.
var (
	scheduleKeys = []string{"name", "cron", "zone", "overlap", "catch_up", "catch_up_window", "jitter", "alert_after", "on_tick", "paused",
		"task"}
	scheduleOtherKey = []string{"next_at", "last_at", "last_task_id", "last_state", "last_duration", "last_success", "skipped",
		"created_at", "updated_at",
		"next", "applied"}
)

// ReadSchedule parses a schedule in the format of "schedule list --json". It sets missing keys to their defaults and does not validate the
// result.
func ReadSchedule(text []byte, caller invocation.Invocation) (s jobs.Schedule, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	var keys map[string]json.RawMessage
	if err := decoder.Decode(&keys); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return s, errors.New("must be an object")
		}
		return s, fmt.Errorf("is not JSON: %w", err)
	}
	if decoder.More() {
		return s, errors.New("holds more than one object")
	}
	for key := range keys {
		if known := slices.Concat(scheduleKeys, scheduleOtherKey); !slices.Contains(known, key) {
			if near := humanize.Nearest(key, known); near != "" {
				return s, fmt.Errorf("unknown field %q (%s?)", key, near)
			}
			return s, fmt.Errorf("unknown field %q", key)
		}
	}
	v := &scheduleValues{keys: keys}
	paused := false
	read(v, "name", &s.Name, "must be a string")
	read(v, "cron", &s.Cron, "must be a string")
	read(v, "zone", &s.Zone, "must be a string")
	read(v, "overlap", &s.Overlap, "must be a string")
	read(v, "catch_up", &s.CatchUp, "must be a string")
	read(v, "paused", &paused, "must be true or false")
	read(v, "on_tick", &s.OnTick, "must be true or false")
	v.seconds("catch_up_window", &s.CatchUpWindow)
	v.seconds("jitter", &s.Jitter)
	v.seconds("alert_after", &s.AlertAfter)
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
	s.Spec, err = readScheduleTask(keys["task"], caller)
	if err != nil {
		return s, fmt.Errorf("task: %w", err)
	}
	return s, nil
}

// readScheduleTask parses the task of a schedule like a line of --batch. A null in the key "path" or "cwd" means that the worker chooses
// the program or the directory. If the key is missing, the value of this process applies.
func readScheduleTask(text json.RawMessage, caller invocation.Invocation) (jobs.Spec, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return jobs.Spec{}, errors.New("must be an object")
	}
	_, hasPath := keys["path"]
	_, hasCwd := keys["cwd"]
	base := jobs.Command{}.With()
	base.Args, base.Err = nil, nil
	if !hasCwd {
		base.Cwd = caller.Dir
	}
	reader := newLineReader(Options{Base: base, Caller: caller, NoResolve: hasPath})
	spec, names, err := reader.spec(bytes.TrimSpace(text))
	if err == nil && len(names.after)+len(names.afterAny) > 0 {
		err = &jobs.FieldError{Field: "after", Msg: "the task of a schedule waits for no others"}
	}
	return spec, err
}

// scheduleValues reads the values of a JSON object by key. It treats null like a missing key. The field "err" is the first error.
type scheduleValues struct {
	keys map[string]json.RawMessage
	err  error
}

func (v *scheduleValues) has(key string) bool {
	return len(v.keys[key]) > 0 && string(v.keys[key]) != "null"
}

func read[T any](v *scheduleValues, key string, to *T, wrong string) {
	if v.err == nil && v.has(key) && json.Unmarshal(v.keys[key], to) != nil {
		v.err = &jobs.FieldError{Field: key, Msg: wrong}
	}
}

func (v *scheduleValues) seconds(key string, to *time.Duration) {
	n := 0.0
	read(v, key, &n, "must be a number of seconds")
	if v.err == nil && (n < 0 || n > taskspec.MaxDelay.Seconds()) {
		v.err = &jobs.FieldError{Field: key, Msg: "is out of range (0 to 10 years, in seconds)"}
	}
	*to = time.Duration(math.Round(n*1000)) * time.Millisecond
}
