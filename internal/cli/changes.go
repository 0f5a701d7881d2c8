package cli

import (
	"maps"

	"example.com/runner/internal/ops"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// changes returns what the typed flags change in the Spec of a new or an older
// task.
func changes(c *Context, a *App, caller ops.Invocation) (list []jobs.Option, err error) {
	for _, o := range taskspec.Options {
		if o.Flag == "" || !c.IsSet(o.Flag) && !(o.Key == "env" && Get[bool](c, "inherit-env")) {
			continue
		}
		change, err := change(c, a, caller, o)
		if err != nil {
			return nil, err
		}
		list = append(list, change)
	}
	if Get[bool](c, "at-most-once") {
		list = append(list, jobs.AtMostOnce())
	}
	return list, nil
}

// change returns what a flag changes.
func change(c *Context, a *App, caller ops.Invocation, o *taskspec.OptionInfo) (jobs.Option, error) {
	set := func(s *jobs.Spec) { setOption(c, a, o, s) }
	switch o.Key {
	case "cwd":
		dir, err := caller.WorkDir(Get[string](c, "cwd"))
		return func(s *jobs.Spec) { s.Cwd = dir }, err
	case "env":
		env, err := ops.Environment(Get[[]string](c, "env"), Get[bool](c, "inherit-env"))
		return func(s *jobs.Spec) {
			all := map[string]string{}
			maps.Copy(all, s.Env)
			maps.Copy(all, env)
			s.Env = all
		}, err
	case "env_file":
		path := caller.Absolute(Get[string](c, "env-file"))
		return func(s *jobs.Spec) { s.EnvFile = path }, nil
	case "input":
		data, err := ops.ReadSource("--input ", Get[string](c, "input"), taskspec.MaxInput, a.Stdin)
		return func(s *jobs.Spec) { s.Input = append([]byte{}, data...) }, err // nil would mean that a task keeps its input
	case "metadata":
		return func(s *jobs.Spec) {
			var added jobs.Spec
			setOption(c, a, o, &added)
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
			if !c.IsSet("backoff-max") {
				s.Backoff.Max = max(s.Backoff.Max, s.Backoff.Delay)
			}
		}, nil
	}
	return set, nil
}

// setOption sets a task option to the value of its flag.
func setOption(c *Context, a *App, o *taskspec.OptionInfo, s *jobs.Spec) {
	value := o.New()
	for _, text := range Get[[]string](c, o.Flag) {
		_ = value.Parse(text, a.Now()) // newFlag has accepted the text
	}
	o.Set(s, value)
}
