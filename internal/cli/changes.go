package cli

import (
	"maps"

	"example.com/runner/internal/ops"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// changes returns what the typed flags change in the Spec of a new or an older
// task.
func (t *TaskFlags) changes(a *App, caller ops.Invocation) (list []jobs.Option, err error) {
	for _, o := range taskspec.Options {
		if len(t.typed(o.Key)) == 0 && !(o.Key == "env" && t.inheritEnv) {
			continue
		}
		change, err := t.change(a, caller, o)
		if err != nil {
			return nil, err
		}
		list = append(list, change)
	}

	if t.atMostOnce {
		list = append(list, jobs.AtMostOnce())
	}

	return list, nil
}

// change returns what a flag changes.
func (t *TaskFlags) change(a *App, caller ops.Invocation, o *taskspec.OptionInfo) (jobs.Option, error) {
	set := func(s *jobs.Spec) {
		value := o.New()
		for _, text := range t.typed(o.Key) {
			_ = value.Parse(text, a.Now()) // TaskFlags.option has accepted the text
		}
		o.Set(s, value)
	}
	switch o.Key {
	case "cwd":
		dir, err := caller.WorkDir(t.last("cwd"))
		return func(s *jobs.Spec) { s.Cwd = dir }, err
	case "env":
		env, err := ops.Environment(t.typed("env"), t.inheritEnv)
		return func(s *jobs.Spec) {
			all := map[string]string{}
			maps.Copy(all, s.Env)
			maps.Copy(all, env)
			s.Env = all
		}, err
	case "env_file":
		path := caller.Absolute(t.last("env_file"))
		return func(s *jobs.Spec) { s.EnvFile = path }, nil
	case "input":
		data, err := ops.ReadSource("--input ", t.last("input"), taskspec.MaxInput, a.Stdin)
		return func(s *jobs.Spec) { s.Input = append([]byte{}, data...) }, err // nil would mean that a task keeps its input
	case "metadata":
		return func(s *jobs.Spec) {
			var added jobs.Spec
			set(&added)
			jobs.Metadata(added.Metadata)(s)
		}, nil
	case "in", "run_at":
		return func(s *jobs.Spec) {
			s.In, s.RunAt = 0, jobs.Spec{}.RunAt
			set(s)
		}, nil
	case "backoff_delay":
		return func(s *jobs.Spec) {
			set(s)
			if len(t.typed("backoff_max")) == 0 {
				s.Backoff.Max = max(s.Backoff.Max, s.Backoff.Delay)
			}
		}, nil
	}

	return set, nil
}
