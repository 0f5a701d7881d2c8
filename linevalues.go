package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// The keys of a line of --batch that are used (cli.md 7.3).
const (
	keyJob = iota
	keyArgs
	keyShell
	keyLabel
	keyQueue
	keyPriority
	keyRunAt
	keyIn
	keyExpiresAt
	keyExpiresIn
	keyAfter
	keyAfterAny
	keyLane
	keyUniqueKey
	keyTimeout
	keyKillAfter
	keyMaxAttempts
	keyMaxLosses
	keyBackoff
	keyBackoffDelay
	keyBackoffMax
	keyRetryOn
	keyOutputLimit
	keyPath
	keyCwd
	keyEnv
	keyEnvFile
	keyInput
	keyID         // what other lines call it in after and after_any
	keyInputBytes // looked at only to notice that the input is missing
	keyState      // looked at only to notice that the task has finished
	keys
)

var keyNames = [keys]string{"job", "args", "shell", "label", "queue", "priority", "run_at", "in", "expires_at", "expires_in", "after",
	"after_any", "lane", "unique_key", "timeout", "kill_after", "max_attempts", "max_losses", "backoff", "backoff_delay", "backoff_max",
	"retry_on", "output_limit", "path", "cwd", "env", "env_file", "input", "id", "input_bytes", "state"}

// otherKeys are those of records of tasks that say what became of a task, and not what was asked. They are passed over.
var otherKeys = []string{"reason", "schedule", "attempt", "losses", "generation_id", "worker_id", "worker", "lease_expires_at",
	"cancel_requested_at", "created_at", "created_by", "updated_at", "started_at", "finished_at", "duration", "result", "error",
	"exit_code", "signal", "output_bytes", "output_truncated", "progress", "enqueued", "why", "dependencies", "dependents", "steps", "history", "outlived"}

// lineValues are the values of a line, as JSON, by key. Null is like absent. The first error stays.
type lineValues struct {
	raw [keys][]byte
	err error
}

// split finds the values of an object, which is valid JSON.
func (v *lineValues) split(text []byte, index map[string]int) error {
	seen := uint64(0)
	i := blank(text, 1)
	for text[i] != '}' {
		end := value(text, i)
		name := text[i+1 : end-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			plain, err := unquote(text[i:end])
			if err != nil {
				return err
			}
			name = []byte(plain)
		}
		k, known := index[string(name)]
		if !known {
			return unknownField(string(name))
		}
		i = blank(text, blank(text, end)+1) // over the colon
		end = value(text, i)
		if k < keys {
			if seen&(1<<k) != 0 {
				return fmt.Errorf("field %q is there twice", name)
			}
			seen |= 1 << k
			if text[i] != 'n' { // null
				v.raw[k] = text[i:end]
			}
		}
		if i = blank(text, end); text[i] == ',' {
			i = blank(text, i+1)
		}
	}
	return nil
}

func unknownField(name string) error {
	if near := nearest(name, append(keyNames[:], otherKeys...)); near != "" {
		return fmt.Errorf("unknown field %q (%s?)", name, near)
	}
	return fmt.Errorf("unknown field %q", name)
}

// blank returns where the blanks at i end.
func blank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// value returns where the value at i ends.
func value(text []byte, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth > 0 {
				continue
			}
			for i < len(text) && strings.IndexByte(",]} \t\r\n", text[i]) < 0 {
				i++
			}
			return i
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

func unquote(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}

func (v *lineValues) has(list ...int) bool {
	for _, k := range list {
		if v.raw[k] != nil {
			return true
		}
	}
	return false
}

func (v *lineValues) wrong(k int, format string, args ...any) {
	if v.err == nil {
		v.err = &jobs.FieldError{Field: keyNames[k], Msg: fmt.Sprintf(format, args...)}
	}
}

func (v *lineValues) text(k int, to *string) {
	raw := v.raw[k]
	switch {
	case raw == nil:
	case raw[0] != '"':
		v.wrong(k, "is no text")
	default:
		text, err := unquote(raw)
		if err != nil {
			v.wrong(k, "%v", err)
		}
		*to = text
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
		v.wrong(k, "%s is no whole number", shortened(raw))
	case n < low || int64(T(n)) != n:
		v.wrong(k, "%d is out of range", n)
	default:
		*to = T(n)
	}
}

// seconds reads a duration: a number of seconds. Less than a millisecond, but more than nothing, is one.
func (v *lineValues) seconds(k int, to *time.Duration) {
	raw := v.raw[k]
	if raw == nil {
		return
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case raw[0] == '"' || raw[0] == '{' || raw[0] == '[' || raw[0] == 't' || raw[0] == 'f':
		v.wrong(k, "is no number of seconds")
	case err != nil || n < 0 || n > jobs.MaxDelay.Seconds():
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
		v.wrong(k, "%q is no time as in 2026-01-31T15:04:05Z", text)
	}
	*to = at
}

// args reads what the task runs: args, or the script of shell.
func (v *lineValues) args(s *jobs.Spec) {
	switch {
	case v.has(keyShell) && (v.has(keyArgs) || s.Job != jobs.CommandJob):
		v.wrong(keyShell, "goes with neither args nor another job than %s", jobs.CommandJob)
	case v.has(keyShell):
		script := ""
		v.text(keyShell, &script)
		command := jobs.Shell(script)
		args, err := jobs.MarshalArgs(command.Argv)
		if s.Args, s.Path = args, command.Path; err != nil {
			v.wrong(keyShell, "%v", err)
		}
	case v.has(keyArgs):
		s.Args = bytes.Clone(v.raw[keyArgs])
	case s.Job == jobs.CommandJob:
		v.wrong(keyArgs, "a command needs args or shell")
	}
}

func (v *lineValues) variables(s *jobs.Spec) {
	raw := v.raw[keyEnv]
	if raw == nil || v.err != nil {
		return
	}
	if raw[0] != '{' {
		v.wrong(keyEnv, "is no object")
		return
	}
	var env map[string]*string
	if json.Unmarshal(raw, &env) != nil {
		v.wrong(keyEnv, "holds a value that is no text")
		return
	}
	s.Env = make(map[string]string, len(env))
	for name, text := range env {
		if text == nil {
			v.err = fmt.Errorf("env %s is hidden; export with --reveal", name)
			return
		}
		s.Env[name] = *text
	}
}

func (v *lineValues) input(s *jobs.Spec) {
	text := ""
	v.text(keyInput, &text)
	if text != "" {
		input, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			v.wrong(keyInput, "is not base64")
		}
		s.Input = input
	}
	size := int64(0)
	if whole(v, keyInputBytes, &size, 0); v.err == nil && size > 0 && text == "" {
		v.err = errors.New("input is hidden; export with --reveal")
	}
}

// errFinished refuses tasks that have run already.
var errFinished = errors.New("the task has finished")

// refuse notices what must not be passed over in silence.
func (v *lineValues) refuse() {
	state := ""
	if v.text(keyState, &state); jobs.State(state).Finished() {
		v.err = fmt.Errorf("%w: its state is %s", errFinished, state)
	}
}

// shortened is a value as errors show it.
func shortened(raw []byte) string {
	if len(raw) > 40 {
		return strings.ToValidUTF8(string(raw[:37]), "") + "..."
	}
	return string(raw)
}
