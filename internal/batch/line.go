package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/invocation"
	"example.com/runner/internal/jsonscan"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// lineReader converts the lines of a batch to Specs. It is safe for concurrent use.
type lineReader struct {
	base      jobs.Spec // options of the command line, which are the defaults for a line
	caller    invocation.Invocation
	noResolve bool
	keys      lineKeys

	mu    sync.Mutex
	paths map[string]found
}

// lineDraft is a parsed line, or its error. The names of other lines are not yet resolved to ids.
type lineDraft struct {
	line  int // line number, from 1
	spec  jobs.Spec
	names lineNames
	err   error
}

// found is the path of a program, or the reason why it was not found.
type found struct {
	path    string
	failure *failure.Error
}

// pathsMost is the maximum number of cached program paths.
const pathsMost = 10_000

func newLineReader(o Options) *lineReader {
	return &lineReader{base: o.Base, caller: o.Caller, noResolve: o.NoResolve, keys: newLineKeys(), paths: map[string]found{}}
}

// drafts parses the lines of a part. It skips blank lines.
func (l *lineReader) drafts(p part, validate bool) []lineDraft {
	if p.err != nil {
		return []lineDraft{{line: p.line, err: p.err}}
	}
	list := make([]lineDraft, 0, bytes.Count(p.text, []byte("\n"))+1)
	n := p.line - 1
	for text := range bytes.Lines(p.text) {
		if n++; n == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff")) // programs on Windows often write a byte order mark
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		d := lineDraft{line: n}
		if d.spec, d.names, d.err = l.spec(text); d.err == nil && validate {
			d.err = taskspec.Validate(&d.spec)
		}
		list = append(list, d)
	}
	return list
}

// spec parses one line, which is an object or an argv as an array. It keeps no reference to text. The Spec that it returns is complete but
// not validated.
func (l *lineReader) spec(text []byte) (jobs.Spec, lineNames, error) {
	if !utf8.Valid(text) {
		return jobs.Spec{}, lineNames{}, errors.New("is not UTF-8")
	}
	if !json.Valid(text) {
		var v any
		return jobs.Spec{}, lineNames{}, fmt.Errorf("is not JSON: %w", json.Unmarshal(text, &v))
	}
	line := lineValues{keys: l.keys}
	switch text[0] {
	case '[':
		line.raw[keyArgs] = text
	case '{':
		if err := line.split(text); err != nil {
			return jobs.Spec{}, lineNames{}, err
		}
	default:
		return jobs.Spec{}, lineNames{}, errors.New("is neither an object nor an array")
	}
	return l.build(&line)
}

// build returns the Spec of a line. The options of the command line are the defaults.
func (l *lineReader) build(v *lineValues) (jobs.Spec, lineNames, error) {
	s := l.base
	s.Path, s.Cwd, s.Env, s.EnvFile, s.Input = "", "", nil, "", nil
	v.refuse()
	v.text(keyJob, &s.Job)
	if s.Job == "" {
		s.Job = jobs.CommandJob
	}
	v.args(&s)
	names := v.names()
	if v.has("run_at", "in") {
		s.RunAt, s.In = time.Time{}, 0
	}
	if v.has("expires_at", "expires_in") {
		s.ExpiresIn = 0
	}
	for i := range taskspec.OptionList() {
		if k := firstOption + i; v.raw[k] != nil {
			v.option(k, &taskspec.OptionList()[i], &s)
		}
	}
	if v.has("lane") && s.Lane == "" {
		v.wrong(v.keys["lane"], "is empty")
	}
	s.Replace = s.Replace && s.UniqueKey != ""
	if !v.has("backoff_max") {
		s.Backoff.Max = max(s.Backoff.Max, s.Backoff.Delay)
	}
	v.hiddenInput(&s)
	if v.err == nil && s.Job == jobs.CommandJob {
		v.err = l.command(&s)
	}
	return s, names, v.err
}

// command sets the fields that only commands have, and finds the program.
func (l *lineReader) command(s *jobs.Spec) error {
	if s.MaxAttempts == 0 {
		s.MaxAttempts = jobs.CommandAttempts
	}
	if s.Cwd = l.caller.Absolute(s.Cwd); s.Cwd == "" {
		s.Cwd = l.base.Cwd
	}
	if s.EnvFile = l.caller.Absolute(s.EnvFile); s.EnvFile == "" {
		s.EnvFile = l.base.EnvFile
	}
	if s.Input == nil {
		s.Input = l.base.Input
	}
	switch {
	case len(s.Env) == 0:
		s.Env = l.base.Env
	case len(l.base.Env) > 0:
		env := maps.Clone(l.base.Env)
		maps.Copy(env, s.Env)
		s.Env = env
	}
	if s.Path != "" || l.noResolve {
		return nil
	}
	name, err := firstOf(s.Args)
	if err != nil {
		return err
	}
	one := l.find(name, s.Cwd)
	if one.failure != nil {
		return one.failure
	}
	s.Path = one.path
	return nil
}

func (l *lineReader) find(name, cwd string) found {
	key := name
	if strings.ContainsAny(key, `/\`) {
		key = cwd + "\x00" + key
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one, known := l.paths[key]
	if !known {
		if len(l.paths) >= pathsMost {
			clear(l.paths)
		}
		one.path, one.failure = l.caller.Find(name, cwd)
		l.paths[key] = one
	}
	return one
}

// firstOf returns the first word of an argv.
func firstOf(args json.RawMessage) (string, error) {
	if i := jsonscan.Blank(args, 1); args[0] == '[' && args[i] == '"' && args[i+1] != '"' {
		return jsonscan.Unquote(args[i:jsonscan.Value(args, i)])
	}
	argv, err := jobs.Argv(args)
	if err != nil {
		return "", err
	}
	return argv[0], nil
}
