package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/invocation"
	"example.com/runner/jobs"
)

// spoken returns the name of the current command, enqueue or schedule add, for messages.
func spoken(c *cli.Context) string {
	if c.Command.Name == "add" {
		return "schedule add"
	}
	return c.Command.Name
}

// typical returns the start of an example command line for the current command.
func typical(c *cli.Context) string {
	if c.Command.Name == "add" {
		return "runner schedule add NAME --cron '0 3 * * *'"
	}
	return "runner enqueue"
}

// agree returns an error if options contradict each other or a required one is missing.
func (o *enqueueOptions) agree(c *cli.Context) error {
	set := func(names ...string) (found string) {
		for _, name := range names {
			if c.IsSet(name) {
				found = name
			}
		}
		return found
	}
	var forms []string
	if len(o.words) > 0 {
		forms = append(forms, "a command")
	}
	for _, name := range []string{"shell", "job", "batch"} {
		if c.IsSet(name) && (name != "job" || !c.IsSet("batch")) {
			forms = append(forms, "--"+name)
		}
	}
	stdin := 0
	for _, name := range []string{"input", "args", "batch"} {
		if cli.Get[string](c, name) == "-" {
			stdin++
		}
	}
	attempts := cli.Get[int](c, "max-attempts")
	switch {
	case len(forms) == 0:
		return failure.Usage("%s needs a command", spoken(c)).Hint("%s -- backup.sh --full", typical(c))
	case len(forms) > 1 && forms[0] == "a command":
		return failure.Usage("%s and a command exclude each other: %q is left over", forms[1], o.words[0])
	case len(forms) > 1:
		return failure.Usage("%s and %s exclude each other", forms[0], forms[1])
	case len(o.words) > 0 && o.words[0] == "":
		return failure.Usage("the command is empty")
	case c.IsSet("shell") && strings.TrimSpace(cli.Get[string](c, "shell")) == "":
		return failure.Usage("--shell is empty")
	case c.IsSet("batch") && o.batch == "":
		return failure.Usage("--batch is empty").Hint("--batch FILE, or --batch - for stdin")
	case c.IsSet("args") && (!c.IsSet("job") || o.batch != ""):
		return failure.Usage("--args goes with --job").Hint("%s --job email.send --args '{}'", typical(c))
	case cli.Get[string](c, "job") == jobs.CommandJob && o.batch == "":
		return failure.Usage("the job %q is reserved", jobs.CommandJob).Hint("%s -- backup.sh --full", typical(c))
	case stdin > 1:
		return failure.Usage("stdin can be read once: --input -, --args - or --batch -")
	case c.IsSet("unique-mode") && cli.Get[string](c, "unique") == "" && o.batch == "":
		return failure.Usage("--unique-mode goes with --unique").Hint("--unique KEY --unique-mode %s", cli.Get[string](c, "unique-mode"))
	case set("in") != "" && set("at") != "":
		return failure.Usage("--in and --at exclude each other")
	case c.IsSet("job") && o.batch == "" && set("cwd", "env", "inherit-env", "env-file", "input", "no-resolve", "retry-on") != "":
		return failure.Usage("--%s is for commands, not for functions", set("cwd", "env", "inherit-env", "env-file", "input", "no-resolve",
			"retry-on"))
	case cli.Get[bool](c, "at-most-once") && (attempts > 1 || c.IsSet("max-losses") && cli.Get[int](c, "max-losses") > 0):
		return failure.Usage("--at-most-once is --max-attempts 1 --max-losses 0: more contradicts it")
	case c.IsSet("retry-on") && attempts < 2:
		return failure.Usage("--retry-on needs --max-attempts above 1")
	case o.batch != "" && (o.wait || c.IsSet("wait-timeout") || o.result):
		return failure.Usage("--wait waits for one task, not for a batch").Hint("runner wait")
	case o.batch == "" && o.keepGoing:
		return failure.Usage("--keep-going goes with --batch")
	case !o.wait && (c.IsSet("wait-timeout") || o.result):
		return failure.Usage("--%s goes with --wait", set("wait-timeout", "result"))
	case o.result && cli.Get[bool](c, "json"):
		return failure.Usage("--result and --json exclude each other").Because("the record holds the result")
	}
	return nil
}

// command builds the Spec of a command. It finds the program's path, except with --no-resolve.
func (o *enqueueOptions) command(c *cli.Context, command jobs.Command) error {
	if err := o.resolve(&command); err != nil {
		return err
	}
	o.spec = command.With(settings(c))
	if o.spec.MaxAttempts == 0 {
		o.spec.MaxAttempts = jobs.CommandAttempts
	}
	return nil
}

func (o *enqueueOptions) resolve(command *jobs.Command) error {
	if o.noResolve {
		return nil
	}
	name := command.Argv[0]
	path, f := o.caller.Find(name, command.Dir)
	switch {
	case f == nil:
		command.Path = path
		return nil
	case len(o.words) == 1 && strings.ContainsAny(name, " |&;<>*$") && f.Exit == invocation.StatusNotFound:
		return failure.Usage("%q is one word and names no file: there is no shell", name).Hint("--shell %s", shellescape.Quote(name))
	case len(o.words) == 0 && f.Exit == invocation.StatusNotFound:
		f = invocation.StartFailure(f.Exit, "no %s in this image", name)
	}
	if !o.wait {
		f.Exit = 1
	}
	return f
}

// function builds the Spec of a call of a registered function. Without --max-attempts the function's own maximum applies.
func (o *enqueueOptions) function(c *cli.Context, a *cli.App) error {
	var args json.RawMessage
	if c.IsSet("args") {
		text, err := invocation.ReadArgs(cli.Get[string](c, "args"), a.Stdin)
		if err != nil {
			return err
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, text); err != nil {
			return failure.Usage("--args: is not JSON: %v", err)
		}
		args = compact.Bytes()
	}
	o.spec = jobs.Define[json.RawMessage](cli.Get[string](c, "job")).With(nil, settings(c))
	o.spec.Args = args
	return nil
}

// flagged converts a validation error of a field to an error that names the option.
func flagged(err error) error {
	f, ok := errors.AsType[*jobs.FieldError](err)
	if !ok {
		return err
	}
	switch f.Field {
	case "unique_key":
		return failure.Usage("--unique: %s", f.Msg)
	case "run_at":
		return failure.Usage("--at: %s", f.Msg)
	case "args": // the args of a command are its words
		return failure.Usage("args: %s", f.Msg)
	}
	return err
}
