package batch

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskjson"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// plainKeys are the keys of a line that are not task options. The last three come from the JSON record of an existing task.
var plainKeys = []string{"job", "args", "shell", "id", "input_bytes", "state", "paused_at"}

// otherKeys are the keys with which the JSON record of a task reports how the task ran. A batch ignores them.
var otherKeys = []string{"reason", "schedule", "batch", "attempt", "losses", "generation_id", "worker_id", "worker", "lease_expires_at",
	"cancel_requested_at", "created_at", "created_by", "updated_at", "started_at", "finished_at", "duration", "result", "error",
	"error_line",
	"exit_code", "signal", "output_bytes", "output_truncated", "children_killed", "children_left",
	"user_time", "system_time", "max_rss", "read_bytes", "written_bytes", "progress", "enqueued", "why",
	"dependencies", "dependents", "steps", "history", "outlived", "paused_by", "paused_reason",
	"changes"}

// lineKeys returns the keys that a line may have.
func lineKeys() map[string]bool {
	keys := keySet(plainKeys, otherKeys)
	for i := range taskspec.OptionList() {
		keys[taskspec.OptionList()[i].Key] = true
	}
	return keys
}

func keySet(lists ...[]string) map[string]bool {
	keys := map[string]bool{}
	for _, key := range slices.Concat(lists...) {
		keys[key] = true
	}
	return keys
}

// Keys returns the keys that a line may have, for the help text.
func Keys() string {
	keys := "job args shell"
	for i := range taskspec.OptionList() {
		keys += " " + taskspec.OptionList()[i].Key
	}
	return strings.Join(term.Wrap(keys, 79), "\n")
}

// values are the members of a JSON object. A null is like a missing member. The
// field err is the first error.
type values struct {
	members map[string]json.RawMessage
	err     error
}

// newValues decodes a JSON object that may have only some keys.
func newValues(text []byte, known map[string]bool) (*values, error) {
	v := &values{}
	if err := json.Unmarshal(text, &v.members); err != nil {
		return nil, err
	}
	for key, raw := range v.members {
		if !known[key] {
			return nil, unknown(key, known)
		}
		if raw[0] == 'n' {
			delete(v.members, key)
		}
	}
	return v, nil
}

func unknown(key string, known map[string]bool) error {
	if near := humanize.Nearest(key, slices.Sorted(maps.Keys(known))); near != "" {
		return fmt.Errorf("unknown field %q (%s?)", key, near)
	}
	return fmt.Errorf("unknown field %q", key)
}

// has reports whether the object has one of these keys.
func (v *values) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return v.members[key] != nil })
}

func (v *values) wrong(key, format string, args ...any) {
	if v.err == nil {
		v.err = &jobs.FieldError{Field: key, Msg: fmt.Sprintf(format, args...)}
	}
}

// option parses the value of a task option. It does not parse the options "after" and "after_any": the method "names" does that.
func (v *values) option(o *taskspec.OptionInfo, s *jobs.Spec) {
	switch to := o.Field(s).(type) {
	case *string:
		v.text(o.Key, to)
	case *jobs.Codes:
		v.text(o.Key, (*string)(to))
	case *int:
		whole(v, o.Key, to, o.Min)
	case *int64:
		whole(v, o.Key, to, o.Min)
	case *time.Duration:
		v.seconds(o.Key, to)
	case *time.Time:
		v.time(o.Key, to)
	case *[]int64:
		*to = nil
	case *map[string]string:
		v.texts(o, to)
	case *[]byte:
		v.bytes(o.Key, to)
	case *bool:
		decode(v, o.Key, to, "must be true or false")
	}
}

// decode decodes a value with encoding/json.
func decode[T any](v *values, key string, to *T, wrong string) {
	if raw := v.members[key]; raw != nil && json.Unmarshal(raw, to) != nil {
		v.wrong(key, "%s", wrong)
	}
}

func (v *values) text(key string, to *string) { decode(v, key, to, "must be a string") }

func whole[T int | int64](v *values, key string, to *T, low int64) {
	raw := v.members[key]
	if raw == nil {
		return
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case err != nil:
		v.wrong(key, "%s must be a whole number", shortened(raw))
	case n < low || int64(T(n)) != n:
		v.wrong(key, "%d is out of range", n)
	default:
		*to = T(n)
	}
}

// seconds parses a duration, which is a number of seconds. It rounds to milliseconds, but a value above 0 becomes at least 1 ms.
func (v *values) seconds(key string, to *time.Duration) {
	raw := v.members[key]
	if raw == nil {
		return
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case raw[0] != '-' && (raw[0] < '0' || raw[0] > '9'):
		v.wrong(key, "must be a number of seconds")
	case err != nil || n < 0 || n > taskspec.MaxDelay.Seconds():
		v.wrong(key, "%s is out of range (0 to 10 years, in seconds)", shortened(raw))
	case n > 0:
		*to = max(time.Duration(math.Round(n*1000))*time.Millisecond, time.Millisecond)
	default:
		*to = 0
	}
}

func (v *values) time(key string, to *time.Time) {
	text := ""
	if v.text(key, &text); text == "" {
		return
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		v.wrong(key, "invalid time %q; use 2026-01-31T15:04:05Z", text)
	}
	*to = at
}

// args parses the arguments of the task. They are in the key "args". For a shell script they are in the key "shell".
func (v *values) args(s *jobs.Spec) {
	switch args, shell := v.members["args"], v.members["shell"]; {
	case shell != nil && (args != nil || s.Job != jobs.CommandJob):
		v.wrong("shell", "goes with neither args nor another job than %s", jobs.CommandJob)
	case shell != nil:
		script := ""
		v.text("shell", &script)
		command := jobs.Shell(script)
		args, err := taskjson.Marshal(command.Argv)
		if s.Args, s.Path = args, command.Path; err != nil {
			v.wrong("shell", "%v", err)
		}
	case args != nil:
		s.Args = args
	case s.Job == jobs.CommandJob:
		v.wrong("args", "a command needs args or shell")
	}
}

// texts parses an object whose values are strings: metadata, or the environment of a command. A null in an environment is an error: it
// stands for a value that the record does not show.
func (v *values) texts(o *taskspec.OptionInfo, to *map[string]string) {
	raw := v.members[o.Key]
	if v.err != nil {
		return
	}
	if raw[0] != '{' {
		v.wrong(o.Key, "must be an object")
		return
	}
	var byKey map[string]*string
	if json.Unmarshal(raw, &byKey) != nil {
		v.wrong(o.Key, "every value must be a string")
		return
	}
	*to = make(map[string]string, len(byKey))
	for key, text := range byKey {
		if text == nil && o.Secret {
			v.err = fmt.Errorf("env %s is hidden; export with --reveal", key)
			return
		} else if text == nil {
			v.wrong(o.Key, "every value must be a string")
			return
		}
		(*to)[key] = *text
	}
}

// bytes decodes a base64 value.
func (v *values) bytes(key string, to *[]byte) {
	text := ""
	if v.text(key, &text); text == "" {
		return
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		v.wrong(key, "is not base64")
	}
	*to = data
}

// hiddenInput sets an error if the line is a record that was printed without --reveal. Such a record lacks the input of the task.
func (v *values) hiddenInput(s *jobs.Spec) {
	size := int64(0)
	if whole(v, "input_bytes", &size, -1); v.err == nil && size != 0 && len(s.Input) == 0 {
		v.err = errors.New("input is hidden, or was not stored; export with --reveal")
	}
}

// errFinished says that a line is the record of a finished task.
var errFinished = errors.New("the task has finished")

// refuse sets the error errFinished if the line is the record of a finished task.
func (v *values) refuse() {
	state := ""
	if v.text("state", &state); jobs.State(state).Finished() {
		v.err = fmt.Errorf("%w: its state is %s", errFinished, state)
	}
}

// shortened returns a value for an error message, cut to 40 bytes.
func shortened(raw []byte) string {
	if len(raw) > 40 {
		return strings.ToValidUTF8(string(raw[:37]), "") + "..."
	}
	return string(raw)
}
