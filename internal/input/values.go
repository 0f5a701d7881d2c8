package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// lineKeys returns the keys that a line may have: those of options, and those
// of the records that commands print, of which a batch ignores what has
// happened.
func lineKeys() map[string]bool {
	keys := keysOf(ui.NewTask(jobs.Task{}, time.Time{}), "shell", "paused_at", "enqueued", "why", "dependencies", "dependents",
		"steps", "history", "outlived", "paused_by", "paused_reason", "changes")
	for _, o := range taskspec.Options {
		keys[o.Key] = true
	}
	return keys
}

// keysOf returns the keys of a record, and more.
func keysOf(r ui.Record, more ...string) map[string]bool {
	keys := map[string]bool{}
	for _, member := range r {
		keys[member.Key] = true
	}

	for _, key := range more {
		keys[key] = true
	}

	return keys
}

// Keys returns the keys that a line may have, for the help text.
func Keys() string {
	keys := "job args shell"
	for _, o := range taskspec.Options {
		keys += " " + o.Key
	}
	return strings.Join(ui.Wrap(keys, 79), "\n")
}

// values are the members of a JSON object. For has and read, a null is like a
// missing member. err is the first error.
type values struct {
	members map[string]json.RawMessage
	err     error
}

// newValues decodes a JSON object that may have only some keys, or an array
// with the words of a command.
func newValues(text []byte, known map[string]bool) (*values, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("is not UTF-8")
	}

	v := &values{}
	var words json.RawMessage
	to := any(&v.members)
	if text[0] == '[' {
		to, v.members = &words, map[string]json.RawMessage{}
	}

	err := json.Unmarshal(text, to)
	switch _, wrong := errors.AsType[*json.SyntaxError](err); {
	case wrong:
		return nil, fmt.Errorf("is not JSON: %w", err)
	case err != nil || v.members == nil:
		return nil, errors.New("is neither an object nor an array")
	case words != nil:
		v.members["args"] = words
	}

	for key := range v.members {
		if !known[key] {
			return nil, unknownKey(key, known)
		}
	}

	return v, nil
}

func unknownKey(key string, known map[string]bool) error {
	if near := humanize.Nearest(key, slices.Sorted(maps.Keys(known))); near != "" {
		return fmt.Errorf("unknown field %q (%s?)", key, near)
	}
	return fmt.Errorf("unknown field %q", key)
}

// has reports whether the object has one of these keys.
func (v *values) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { raw := v.members[key]; return raw != nil && raw[0] != 'n' })
}

func (v *values) fail(key, format string, args ...any) {
	if v.err == nil {
		v.err = &jobs.FieldError{Field: key, Msg: fmt.Sprintf(format, args...)}
	}
}

// read reads the value of a key.
func (v *values) read(key string, to json.Unmarshaler) {
	if !v.has(key) {
		return
	}
	if err := to.UnmarshalJSON(v.members[key]); err != nil {
		v.fail(key, "%v", err)
	}
}

func (v *values) text(key string, to *string) { v.read(key, (*taskspec.Text)(to)) }

// option reads the value of a task option.
func (v *values) option(o *taskspec.OptionInfo, s *jobs.Spec) {
	value := o.Field(s)
	if v.read(o.Key, value); v.err == nil && o.Key != "cwd" && o.Key != "env_file" { // here they may be relative
		v.err = o.Check(value)
	}
}

// args reads the arguments: the key args or, for a script of the shell, shell.
func (v *values) args(s *jobs.Spec) {
	switch {
	case v.has("shell") && (v.has("args") || s.Job != command.Job):
		v.fail("shell", "goes with neither args nor another job than %s", command.Job)
	case v.has("shell"):
		script := ""
		v.text("shell", &script)
		command := jobs.Command(command.Shell(script))
		s.Args, s.Path = command.Args, command.Path
	case v.has("args"):
		var compact bytes.Buffer
		_ = json.Compact(&compact, v.members["args"]) // it is valid
		s.Args = compact.Bytes()
	case s.Job == command.Job:
		v.fail("args", "a command needs args or shell")
	}
}

// hiddenInput refuses records printed without --reveal, which lack the input.
func (v *values) hiddenInput(s *jobs.Spec) {
	size := taskspec.Size(0)
	if v.read("input_bytes", &size); v.err == nil && size != 0 && len(s.Input) == 0 {
		v.err = errors.New("input is hidden, or was not stored; export with --reveal")
	}
}

// errFinished says that a line is the record of a finished task.
var errFinished = errors.New("the task has finished")

// refuse refuses the record of a finished task.
func (v *values) refuse() {
	state := ""
	if v.text("state", &state); jobs.State(state).Finished() {
		v.err = fmt.Errorf("%w: its state is %s", errFinished, state)
	}
}
