package batch

import (
	"bytes"
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
	"example.com/runner/internal/jsonscan"
	"example.com/runner/internal/taskjson"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// These constants are the indexes of keys in lineValues.raw, for the keys that are not task options. The indexes of the task options
// follow, in the order of taskspec.OptionList.
const (
	keyJob = iota
	keyArgs
	keyShell
	keyID // id of the line, which later lines use in after and after_any
	// The following keys come from the JSON record of an existing task.
	keyInputBytes // size of the input; a record with a size above 0 but without the input is refused (see hiddenInput)
	keyState      // state of the task; the record of a finished task is refused
	keyPausedAt   // time at which somebody paused the existing task; if it is not null, the new task is paused, too
	firstOption
)

var plainKeys = [firstOption]string{"job", "args", "shell", "id", "input_bytes", "state", "paused_at"}

// mostKeys is how many keys a lineValues can store.
const mostKeys = 64

// lineKeys maps the known keys of a line to their indexes in lineValues.raw.
type lineKeys map[string]int

// newLineKeys returns the known keys of a line. The keys in otherKeys get the index mostKeys, which means that their values are ignored.
func newLineKeys() lineKeys {
	keys := lineKeys{}
	for i, name := range plainKeys {
		keys[name] = i
	}
	for i := range taskspec.OptionList() {
		keys[taskspec.OptionList()[i].Key] = firstOption + i
	}
	for _, name := range otherKeys {
		keys[name] = mostKeys
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

// keyName returns the name of the key with an index.
func keyName(k int) string {
	if k < firstOption {
		return plainKeys[k]
	}
	return taskspec.OptionList()[k-firstOption].Key
}

// otherKeys are the keys with which the JSON record of a task reports how the task ran. A batch ignores them.
var otherKeys = []string{"reason", "schedule", "batch", "attempt", "losses", "generation_id", "worker_id", "worker", "lease_expires_at",
	"cancel_requested_at", "created_at", "created_by", "updated_at", "started_at", "finished_at", "duration", "result", "error",
	"error_line",
	"exit_code", "signal", "output_bytes", "output_truncated", "children_killed", "children_left",
	"user_time", "system_time", "max_rss", "read_bytes", "written_bytes", "progress", "enqueued", "why",
	"dependencies", "dependents", "steps", "history", "outlived", "paused_by", "paused_reason",
	"changes"}

// lineValues contains the JSON values of a line, by the index of the key. It treats null like a missing key. The field "err" is the first
// error.
type lineValues struct {
	keys lineKeys
	raw  [mostKeys][]byte
	err  error
}

// split finds the values of a JSON object. The parameter "text" must be valid JSON.
func (v *lineValues) split(text []byte) error {
	seen := uint64(0)
	for name, value := range jsonscan.Members(text) {
		k, known := v.keys[string(name)]
		switch {
		case !known:
			return v.keys.unknown(string(name))
		case k == mostKeys:
			continue
		case seen&(1<<k) != 0:
			return fmt.Errorf("field %q appears twice", name)
		}
		seen |= 1 << k
		if value[0] != 'n' { // treat null like a missing key
			v.raw[k] = value
		}
	}
	return nil
}

func (keys lineKeys) unknown(name string) error {
	if near := humanize.Nearest(name, slices.Sorted(maps.Keys(keys))); near != "" {
		return fmt.Errorf("unknown field %q (%s?)", name, near)
	}
	return fmt.Errorf("unknown field %q", name)
}

// The method "has" reports whether the line contains one of these keys.
func (v *lineValues) has(names ...string) bool {
	for _, name := range names {
		if v.raw[v.keys[name]] != nil {
			return true
		}
	}
	return false
}

// option parses the value of a task option. It does not parse the options "after" and "after_any": the method "names" does that.
func (v *lineValues) option(k int, o *taskspec.OptionInfo, s *jobs.Spec) {
	switch to := o.Field(s).(type) {
	case *string:
		v.text(k, to)
	case *jobs.Codes:
		v.text(k, (*string)(to))
	case *int:
		whole(v, k, to, o.Min)
	case *int64:
		whole(v, k, to, o.Min)
	case *time.Duration:
		v.seconds(k, to)
	case *time.Time:
		v.time(k, to)
	case *[]int64:
		*to = nil
	case *map[string]string:
		v.texts(k, to)
	case *[]byte:
		v.bytes(k, to)
	case *bool:
		v.boolean(k, to)
	}
}

func (v *lineValues) wrong(k int, format string, args ...any) {
	if v.err == nil {
		v.err = &jobs.FieldError{Field: keyName(k), Msg: fmt.Sprintf(format, args...)}
	}
}

func (v *lineValues) text(k int, to *string) {
	raw := v.raw[k]
	switch {
	case raw == nil:
	case raw[0] != '"':
		v.wrong(k, "must be a string")
	default:
		text, err := jsonscan.Unquote(raw)
		if err != nil {
			v.wrong(k, "%v", err)
		}
		*to = text
	}
}

func (v *lineValues) boolean(k int, to *bool) {
	switch raw := v.raw[k]; {
	case raw == nil:
	case raw[0] == 't' || raw[0] == 'f':
		*to = raw[0] == 't'
	default:
		v.wrong(k, "must be true or false")
	}
}

func whole[T int | int64](v *lineValues, k int, to *T, low int64) {
	raw := v.raw[k]
	if raw == nil {
		return
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case err != nil:
		v.wrong(k, "%s must be a whole number", shortened(raw))
	case n < low || int64(T(n)) != n:
		v.wrong(k, "%d is out of range", n)
	default:
		*to = T(n)
	}
}

// seconds parses a duration, which is a number of seconds. It rounds to milliseconds, but a value above 0 becomes at least 1 ms.
func (v *lineValues) seconds(k int, to *time.Duration) {
	raw := v.raw[k]
	if raw == nil {
		return
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case raw[0] == '"' || raw[0] == '{' || raw[0] == '[' || raw[0] == 't' || raw[0] == 'f':
		v.wrong(k, "must be a number of seconds")
	case err != nil || n < 0 || n > taskspec.MaxDelay.Seconds():
		v.wrong(k, "%s is out of range (0 to 10 years, in seconds)", shortened(raw))
	case n > 0:
		*to = max(time.Duration(math.Round(n*1000))*time.Millisecond, time.Millisecond)
	default:
		*to = 0
	}
}

func (v *lineValues) time(k int, to *time.Time) {
	text := ""
	if v.text(k, &text); text == "" {
		return
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		v.wrong(k, "invalid time %q; use 2026-01-31T15:04:05Z", text)
	}
	*to = at
}

// args parses the arguments of the task. They are in the key "args". For a shell script they are in the key "shell".
func (v *lineValues) args(s *jobs.Spec) {
	switch args, shell := v.raw[keyArgs], v.raw[keyShell]; {
	case shell != nil && (args != nil || s.Job != jobs.CommandJob):
		v.wrong(keyShell, "goes with neither args nor another job than %s", jobs.CommandJob)
	case shell != nil:
		script := ""
		v.text(keyShell, &script)
		command := jobs.Shell(script)
		args, err := taskjson.Marshal(command.Argv)
		if s.Args, s.Path = args, command.Path; err != nil {
			v.wrong(keyShell, "%v", err)
		}
	case args != nil:
		s.Args = bytes.Clone(args)
	case s.Job == jobs.CommandJob:
		v.wrong(keyArgs, "a command needs args or shell")
	}
}

// texts parses an object whose values are strings: metadata, or the environment of a command. A null in an environment is an error: it
// stands for a value that the record does not show.
func (v *lineValues) texts(k int, to *map[string]string) {
	raw := v.raw[k]
	if v.err != nil {
		return
	}
	if raw[0] != '{' {
		v.wrong(k, "must be an object")
		return
	}
	var byKey map[string]*string
	if json.Unmarshal(raw, &byKey) != nil {
		v.wrong(k, "every value must be a string")
		return
	}
	*to = make(map[string]string, len(byKey))
	for key, text := range byKey {
		if text == nil && taskspec.OptionList()[k-firstOption].Secret {
			v.err = fmt.Errorf("env %s is hidden; export with --reveal", key)
			return
		} else if text == nil {
			v.wrong(k, "every value must be a string")
			return
		}
		(*to)[key] = *text
	}
}

// bytes decodes a base64 value.
func (v *lineValues) bytes(k int, to *[]byte) {
	text := ""
	if v.text(k, &text); text == "" {
		return
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		v.wrong(k, "is not base64")
	}
	*to = data
}

// hiddenInput sets an error if the line is a record that was printed without --reveal. Such a record lacks the input of the task.
func (v *lineValues) hiddenInput(s *jobs.Spec) {
	size := int64(0)
	if whole(v, keyInputBytes, &size, -1); v.err == nil && size != 0 && len(s.Input) == 0 {
		v.err = errors.New("input is hidden, or was not stored; export with --reveal")
	}
}

// errFinished says that a line is the record of a finished task.
var errFinished = errors.New("the task has finished")

// refuse sets the error errFinished if the line is the record of a finished task.
func (v *lineValues) refuse() {
	state := ""
	if v.text(keyState, &state); jobs.State(state).Finished() {
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
