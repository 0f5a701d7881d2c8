package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/runner/internal/taskoption"
	"example.com/runner/jobs"
)

// taskFlags returns the flags of the task options, in the order of jobs.OptionList.
func (a *app) taskFlags() []cli.Flag {
	var list []cli.Flag
	for i := range jobs.OptionList() {
		if o := &jobs.OptionList()[i]; o.Flag != "" {
			list = append(list, a.taskFlag(o))
			if more := flagBehind(o.Key); more != nil {
				list = append(list, more)
			}
		}
	}
	return list
}

// flagsOfOneTask returns the flags that a schedule does not have.
func flagsOfOneTask() (names []string) {
	for _, o := range jobs.OptionList() {
		if o.OneTask && o.Flag != "" {
			names = append(names, o.Flag)
		}
	}
	return names
}

// flagBehind returns the flag that belongs to a task option and is no option itself, or nil.
func flagBehind(key string) cli.Flag {
	switch key {
	case "unique_key":
		return choiceOption("unique-mode", "--unique: keep that task, or replace it by this one unless it has started (keep)", uniqueKeep,
			uniqueKeep, uniqueReplace)
	case "max_losses":
		return boolOption("at-most-once", "one start: --max-attempts 1 --max-losses 0")
	case "env":
		return boolOption("inherit-env", "copy all variables of this shell")
	}
	return nil
}

// taskFlag returns the flag of a task option. Its type follows from the type of the option.
func (a *app) taskFlag(o *jobs.OptionInfo) *option {
	names, usage := o.Flag, o.Help
	if o.Letter != "" {
		names += " " + o.Letter
	}
	if text := taskoption.Default(o); text != "" {
		usage += " (" + text + ")"
	}
	switch value := o.Default().(type) {
	case *string:
		switch {
		case o.Key == "queue":
			return scalar(names, o.Value, usage, *value, parseQueue)
		case o.Key == "lane":
			return scalar(names, o.Value, usage, *value, parseLane)
		case o.Words != nil:
			return choiceOption(names, usage, *value, o.Words...)
		}
		return textOption(names, o.Value, usage, *value)
	case *[]byte:
		return textOption(names, o.Value, usage, "")
	case *int:
		return intOption(names, o.Value, usage, *value, int(o.Min))
	case *int64:
		return sizeOption(names, usage, *value)
	case *time.Duration:
		return durationOption(names, usage, *value)
	case *time.Time:
		return a.timeOption(names, usage)
	case *[]int64:
		return idsOption(names, usage)
	case *jobs.Codes:
		return codesOption(names, usage)
	case *map[string]string:
		return repeated(names, o.Value, usage, one(parseSetting))
	}
	panic(fmt.Sprintf("no flag for the task option %s", o.Key))
}

// fromCaller are the keys of the options that take something from the calling process: readEnqueueOptions sets them.
var fromCaller = []string{"cwd", "env", "env_file", "input"}

// settings reads the flags of the task options.
func settings(c *cli.Context) jobs.Option {
	return func(s *jobs.Spec) {
		for i := range jobs.OptionList() {
			if o := &jobs.OptionList()[i]; o.Flag != "" && !slices.Contains(fromCaller, o.Key) {
				setOption(c, o, s)
			}
		}
		s.Replace = get[string](c, "unique-mode") == uniqueReplace
		if !c.IsSet("backoff-max") {
			s.Backoff.Max = max(s.Backoff.Max, s.Backoff.Delay)
		}
		if get[bool](c, "at-most-once") {
			jobs.AtMostOnce()(s)
		}
	}
}

// setOption sets an option to the value of its flag, or to its default.
func setOption(c *cli.Context, o *jobs.OptionInfo, s *jobs.Spec) {
	switch to := o.Field(s).(type) {
	case *string:
		*to = get[string](c, o.Flag)
	case *int:
		*to = get[int](c, o.Flag)
	case *int64:
		*to = get[int64](c, o.Flag)
	case *time.Duration:
		*to = get[time.Duration](c, o.Flag)
	case *time.Time:
		*to = get[time.Time](c, o.Flag)
	case *[]int64:
		*to = get[[]int64](c, o.Flag)
	case *jobs.Codes:
		*to = get[jobs.Codes](c, o.Flag)
	}
}
