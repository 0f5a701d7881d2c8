package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/postgres"
)

// suggestion is a word that the shell may insert at the cursor.
type suggestion struct{ Word, About string }

const (
	completionTimeout = 500 * time.Millisecond // the user's shell waits for the query, so it must be short
	maxCompletedIDs   = 50
)

// Complete returns suggestions for the word at the cursor, the last of args.
// The others are the words between "runner" and the cursor. Without
// suggestions, the shell suggests file names. If the database had to be asked
// and gave no answer, Complete returns one without a word: files are no names
// of the database.
func (a *App) Complete(ctx context.Context, args []string) []suggestion {
	list := a.suggestions(ctx, args)
	if len(list) == 0 && a.hasAsked {
		return []suggestion{{}}
	}
	return list
}

func (a *App) suggestions(ctx context.Context, args []string) []suggestion {
	before, word := args[:len(args)-1], args[len(args)-1]
	list := a.AllCommands()
	line, _ := Parse(list, a.GlobalOptions(), before, a.Getenv)
	name, text, valued := strings.Cut(word, "=")
	inUserCommand := line.Command != nil && wordsBeforeCommand(line.Path) >= 0 && (len(line.words) > wordsBeforeCommand(line.Path) ||
		slices.Contains(before, "--"))
	switch {
	case line.missingValue != nil:
		return filterTyped(word, a.optionValues(ctx, line, line.missingValue))
	case inUserCommand: // the word is an argument of the command that the task will run
		return nil
	case strings.HasPrefix(word, "-") && slices.Contains(before, "--"):
		return nil
	case strings.HasPrefix(word, "--") && valued:
		i := slices.IndexFunc(line.options, func(o *Option) bool { return "--"+o.name == name })
		if i < 0 {
			return nil
		}
		return prepend(name+"=", filterTyped(text, a.optionValues(ctx, line, line.options[i])))
	case strings.HasPrefix(word, "-"):
		return filterTyped(word, optionNames(line.options))
	case line.Command == nil || line.Command.Subcommands != nil:
		if line.Command != nil {
			list = line.Command.Subcommands
		}
		return filterTyped(word, commandNames(list))
	}

	return filterTyped(word, a.arguments(ctx, line))
}

// filterTyped returns the suggestions that begin with the typed text. In a list
// with commas it completes the last entry.
func filterTyped(typed string, list []suggestion) []suggestion {
	head := typed[:strings.LastIndexByte(typed, ',')+1]
	typed = typed[len(head):]
	var kept []suggestion
	for _, s := range list {
		if strings.HasPrefix(s.Word, typed) {
			kept = append(kept, s)
		}
	}

	return prepend(head, kept)
}

// prepend puts head before each word.
func prepend(head string, list []suggestion) []suggestion {
	for i := range list {
		list[i].Word = head + list[i].Word
	}
	return list
}

func commandNames(list []*Command) (names []suggestion) {
	for _, c := range list {
		if !c.Hidden {
			names = append(names, suggestion{c.Name, c.Usage})
		}
	}
	return names
}

func optionNames(list []*Option) (names []suggestion) {
	for _, o := range list {
		names = append(names, suggestion{"--" + o.name, o.description()})
	}
	return names
}

// optionValues returns suggestions for the value of an option.
func (a *App) optionValues(ctx context.Context, line Line, o *Option) (values []suggestion) {
	switch {
	case o.name == "state":
		for _, state := range taskspec.AllStates() {
			values = append(values, suggestion{Word: string(state)})
		}
		return append(values, suggestion{"unfinished", "any of the first five"}, suggestion{"finished", "any of the last three"})
	case strings.Contains(o.hint, "|"):
		for word := range strings.SplitSeq(o.hint, "|") {
			values = append(values, suggestion{Word: word})
		}
		return values
	case o.name == "queue":
		return a.query(ctx, line, queueNames)
	case o.name == "schedule":
		return a.query(ctx, line, scheduleSuggestions)
	}
	return nil
}

// arguments suggests names, and ids of tasks whose state fits the command.
func (a *App) arguments(ctx context.Context, line Line) (words []suggestion) {
	f := jobs.Filter{Limit: maxCompletedIDs}
	read := func(ctx context.Context, r *runner.Runner) (ids []suggestion, err error) {
		tasks, err := r.List(ctx, f)
		for _, t := range tasks {
			about := string(t.State) + "  " + ui.Cut(humanize.Safe(ui.JobText(t)), 60)
			ids = append(ids, suggestion{strconv.FormatInt(t.ID, 10), about})
		}
		return ids, err
	}

	switch name := strings.Join(line.Path, " "); name {
	case "completion":
		for _, shell := range Shells {
			words = append(words, suggestion{Word: shell})
		}
		return words
	case "schedule show", "schedule run", "schedule pause", "schedule resume", "schedule remove":
		read = scheduleSuggestions
	case "show", "logs", "list":
	case "wait":
		f.States = taskspec.Unfinished()
	case "edit":
		f, _ = search.VerbPause.Filter(f)
	case "cancel", "retry", "delete", "pause", "resume":
		f, _ = search.Verb(name).Filter(f)
	default:
		return nil
	}

	return slices.DeleteFunc(a.query(ctx, line, read), func(s suggestion) bool { return slices.Contains(line.words, s.Word) })
}

// query asks the database that the command line names. It returns nothing if
// that can't be read or is too slow.
func (a *App) query(ctx context.Context, line Line, read func(context.Context, *runner.Runner) ([]suggestion, error)) []suggestion {
	a.hasAsked = true
	d, err := a.FindDatabase(line.last("db"))
	if err != nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()

	r, err := runner.Open(ctx, d.Path, runner.Options{ReadOnly: true, BusyTimeout: completionTimeout, Engine: postgres.Engine()})
	if err != nil {
		return nil
	}
	defer r.Close()

	list, err := read(ctx, r)
	if err != nil {
		return nil
	}

	return list
}

func queueNames(ctx context.Context, r *runner.Runner) (names []suggestion, err error) {
	queues, err := admin.Queues(ctx, r)
	for _, q := range queues {
		about := humanize.Count(int64(q.Counts[jobs.Pending])) + " pending, " + humanize.Count(int64(q.Counts[jobs.Running])) + " running"
		names = append(names, suggestion{q.Name, about})
	}
	return names, err
}

func scheduleSuggestions(ctx context.Context, r *runner.Runner) (names []suggestion, err error) {
	list, err := admin.Schedules(ctx, r)
	for _, s := range list {
		names = append(names, suggestion{s.Name, s.Cron + "  " +
			ui.Cut(humanize.Safe(ui.JobText(taskspec.NewTask(&s.Spec, time.Time{}))), 60)})
	}
	return names, err
}
