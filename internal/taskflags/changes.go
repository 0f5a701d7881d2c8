package taskflags

import (
	"maps"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/invocation"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// changes returns what the typed flags change in the Spec of a new or an older
// task.
func changes(c *cli.Context, a *cli.App, caller invocation.Invocation) (list []jobs.Option, err error) {
	for i := range taskspec.OptionList() {
		o := &taskspec.OptionList()[i]
		if o.Flag == "" || !c.IsSet(o.Flag) && !(o.Key == "env" && cli.Get[bool](c, "inherit-env")) {
			continue
		}
		change, err := change(c, a, caller, o)
		if err != nil {
			return nil, err
		}
		list = append(list, change)
	}
	if cli.Get[bool](c, "at-most-once") {
		list = append(list, jobs.AtMostOnce())
	}
	return list, nil
}

// change returns what a flag changes.
func change(c *cli.Context, a *cli.App, caller invocation.Invocation, o *taskspec.OptionInfo) (jobs.Option, error) {
	set := func(s *jobs.Spec) { setOption(c, a, o, s) }
	switch o.Key {
	case "cwd":
		dir, err := caller.WorkDir(cli.Get[string](c, "cwd"))
		return func(s *jobs.Spec) { s.Cwd = dir }, err
	case "env":
		env, err := invocation.Environment(cli.Get[[]string](c, "env"), cli.Get[bool](c, "inherit-env"))
		return func(s *jobs.Spec) {
			all := map[string]string{}
			maps.Copy(all, s.Env)
			maps.Copy(all, env)
			s.Env = all
		}, err
	case "env_file":
		path := caller.Absolute(cli.Get[string](c, "env-file"))
		return func(s *jobs.Spec) { s.EnvFile = path }, nil
	case "input":
		data, err := invocation.ReadSource("input", cli.Get[string](c, "input"), taskspec.MaxInput, a.Stdin)
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
func setOption(c *cli.Context, a *cli.App, o *taskspec.OptionInfo, s *jobs.Spec) {
	value := o.New()
	for _, text := range cli.Get[[]string](c, o.Flag) {
		_ = value.Parse(text, a.Now()) // newFlag has accepted the text
	}
	o.Set(s, value)
}
