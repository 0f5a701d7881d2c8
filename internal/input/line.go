package input

import (
	"encoding/json"
	"maps"
	"time"

	"example.com/runner/internal/ops"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// lineReader converts the lines of a batch to Specs.
type lineReader struct {
	base   jobs.Spec // defaults from the options of the command line
	caller ops.Invocation
	keys   map[string]bool // keys that a line may have
	paths  map[program]found
}

// program is a program that a command names.
type program struct{ name, cwd string }

// found is the path of a program, or the error that says why there is no path.
type found struct {
	path    string
	failure *ui.Error
}

func newLineReader(base jobs.Spec, caller ops.Invocation) *lineReader {
	return &lineReader{base: base, caller: caller, keys: lineKeys(), paths: map[program]found{}}
}

// spec parses one line of JSON: an object, or an array with the words of a
// command. It does not validate the Spec, which has copies of text.
func (l *lineReader) spec(text []byte) (jobs.Spec, lineNames, error) {
	v, err := newValues(text, l.keys)
	if err != nil {
		return jobs.Spec{}, lineNames{}, err
	}
	return l.build(v)
}

// defaults returns the Spec of a line that sets nothing. What only commands
// have is empty; complete sets it.
func (l *lineReader) defaults() jobs.Spec {
	s := l.base
	s.Path, s.Cwd, s.Env, s.EnvFile, s.Input = "", "", nil, "", nil
	return s
}

// build returns the Spec of a line. The options of the command line are the
// defaults.
func (l *lineReader) build(v *values) (jobs.Spec, lineNames, error) {
	s := l.defaults()
	v.refuse()
	v.text("job", &s.Job)
	if s.Job == "" {
		s.Job = command.Job
	}

	v.args(&s)
	names := v.lineNames()
	if v.has("run_at", "in") {
		s.RunAt, s.In = time.Time{}, 0
	}
	if v.has("expires_at", "expires_in") {
		s.ExpiresIn = 0
	}

	for _, o := range taskspec.Options {
		switch {
		case !v.has(o.Key):
		case o.Key == "after": // it has names of lines, which Batch.positions resolves
			s.DependsOn = nil
		case o.Key == "after_any":
			s.DependsOnAny = nil
		default:
			v.option(o, &s)
		}
	}

	s.Metadata = withDefaults(s.Metadata, l.base.Metadata)
	if s.UniqueKey == "" && !s.Unique.Args {
		s.Unique.Replace, s.Unique.UntilStart = false, false
	}

	s.Paused = s.Paused || v.has("paused_at")
	if !v.has("backoff_max") {
		s.Backoff.Max = max(s.Backoff.Max, s.Backoff.Delay)
	}

	v.hiddenInput(&s)
	if v.err == nil && s.Job == command.Job {
		v.err = l.complete(&s)
	}

	return s, names, v.err
}

// complete sets the fields that only commands have, and looks for the program.
func (l *lineReader) complete(s *jobs.Spec) error {
	if s.MaxAttempts == 0 {
		s.MaxAttempts = taskspec.CommandAttempts
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

	s.Env = withDefaults(s.Env, l.base.Env)
	if s.Path != "" || l.caller.Elsewhere {
		return nil
	}

	argv, err := taskspec.Argv(s.Args)
	if err != nil {
		return err
	}

	named := program{argv[0], s.Cwd}
	one, known := l.paths[named]
	if !known {
		one.path, one.failure = l.caller.Find(argv[0], s.Cwd)
		l.paths[named] = one
	}
	if one.failure != nil {
		return one.failure
	}

	s.Path = one.path
	return nil
}

// withDefaults returns the entries of both maps; those of texts have
// precedence.
func withDefaults(texts, defaults map[string]string) map[string]string {
	switch {
	case len(texts) == 0:
		return defaults
	case len(defaults) == 0:
		return texts
	}

	all := maps.Clone(defaults)
	maps.Copy(all, texts)
	return all
}

// lineNames has the id of a line, as JSON, and the ids of earlier lines that it
// waits for. The tasks get other ids from the database.
type lineNames struct {
	id              string // empty if the line has none
	after, afterAny []string
}

func (v *values) lineNames() lineNames {
	n := lineNames{after: v.nameList("after"), afterAny: v.nameList("after_any")}
	if v.has("id") {
		n.id = string(v.members["id"])
	}
	return n
}

func (v *values) nameList(key string) (names []string) {
	var list []json.RawMessage
	if v.has(key) && json.Unmarshal(v.members[key], &list) != nil {
		v.fail(key, "must be an array of ids")
	}
	for _, one := range list {
		names = append(names, string(one))
	}

	return names
}
