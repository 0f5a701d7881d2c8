package cli

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

// Line is a parsed command line. runner parses command lines itself, because
// urfave/cli reads some of them wrongly. It gets lines of the form
// "runner COMMAND --long=value ... -- WORD ...".
type Line struct {
	Command      *Command // nil if no command was named
	Path         []string // names of the command and its groups: "schedule", "add"
	given        []givenOption
	words        []string // arguments that are neither options nor command names
	missingValue *Option  // option at the end of the line whose value is missing; nil if there is none

	commands         []*Command // commands that may follow in the line
	globals, options []*Option  // options that may follow in the line
	err              error      // first error in the line
}

type givenOption struct {
	option *Option
	text   string
}

// Parse parses the arguments after the program's name. Options may stand
// before, between and after the other words, but not after "--". Global options
// may also stand before the name of the command. If runner's command takes a
// command of the user, options end at the first word of that one.
//
// If an option with a single value is repeated, the last value counts. An
// option overrides its environment variable. Parse goes on after an error,
// because --json in the rest decides the format of the error.
func Parse(list []*Command, globals []*Option, args []string, getenv func(string) string) (Line, error) {
	line := &Line{commands: list, globals: globals, options: globals}
	rest := args
	for len(rest) > 0 {
		word := rest[0]
		rest = rest[1:]
		switch {
		case word == "--" && line.takesArguments():
			line.endOptions(rest)
			rest = nil
		case word == "--": // before the name of the command, "--" has no meaning
		case len(word) > 1 && word[0] == '-':
			rest = line.flag(word, rest)
		case line.Command == nil && line.err == nil || line.Command != nil && !line.takesArguments():
			line.enter(word, rest)
		default:
			line.words = append(line.words, word)
			if n := wordsBeforeCommand(line.Path); n >= 0 && len(line.words) > n {
				line.words, rest = append(line.words, rest...), nil
			}
		}
	}

	line.checkUTF8(args)
	line.environment(getenv)
	return *line, line.err
}

// takesArguments reports whether a command was named that isn't a group.
func (line *Line) takesArguments() bool {
	return line.Command != nil && line.Command.Subcommands == nil
}

// endOptions handles "--". args are the words after it.
func (line *Line) endOptions(args []string) {
	name := strings.Join(line.Path, " ")
	if name == "edit" { // its words before "--" are ids
		line.words = append(line.words, "--")
	}
	if len(line.words) < wordsBeforeCommand(line.Path) { // only "schedule add" needs a word before "--"
		line.fail(ui.Usage("%s needs a NAME before --", name).Hint("runner schedule add NAME --cron EXPR -- COMMAND"))
	}
	line.words = append(line.words, args...)
}

// checkUTF8 checks all arguments except the user's command, whose words need
// not be UTF-8.
func (line *Line) checkUTF8(args []string) {
	if n := wordsBeforeCommand(line.Path); n >= 0 {
		args = args[:len(args)-max(len(line.words)-n, 0)]
	}
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		line.err = ui.Usage("argument %d, %q, is not UTF-8", i+1, args[i])
	}
}

// wordsBeforeCommand returns how many arguments stand before the command that a
// task will run, or -1 if the arguments have no such command.
func wordsBeforeCommand(path []string) int {
	switch strings.Join(path, " ") {
	case "enqueue", "run":
		return 0
	case "schedule add":
		return 1 // one argument: the NAME of the schedule
	}
	return -1
}

// enter makes the command with this name the current one. args are the words
// after it.
func (line *Line) enter(word string, args []string) {
	if word == "help" && line.Command == nil { // "runner help show" is "runner show --help"
		line.give(line.option("--help"), "true")
		return
	}
	if c := commandNamed(line.commands, word); c != nil {
		line.Command, line.Path, line.commands = c, append(line.Path, c.Name), c.Subcommands
		line.options = append(slices.Clip(optionsOf(c)), line.globals...)
		return
	}

	f := ui.Usage("unknown command %q", strings.Join(append(line.Path, word), " "))
	line.fail(f.Hint("%s", line.commandHint(word, args)))
}

func commandNamed(list []*Command, name string) *Command {
	for _, c := range list {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// flag reads an argument that begins with a dash, and perhaps the option's
// value from the next argument. It returns the remaining arguments.
func (line *Line) flag(word string, args []string) []string {
	name, text, hasText := strings.Cut(word, "=")
	if !strings.HasPrefix(name, "--") {
		isLong := line.option("-"+name) != nil || line.optionSynonym(name) != "" // a long name after a single dash: -queue
		if len(name) == 2 || !isLong {
			return line.letters(word, args)
		}
		line.fail(line.unknownOption(name))
		return args
	}

	o := line.option(name)
	switch {
	case o == nil:
		line.fail(line.unknownOption(name))
	case hasText:
		line.give(o, text)
	case o.hint == "":
		line.give(o, "true")
	default:
		return line.valueFrom(args, o, name)
	}

	return args
}

// letters reads an argument with short options, as getopt does: -fn5 means
// -f -n 5. There may be an equals sign before the value. letters returns the
// remaining arguments.
func (line *Line) letters(word string, args []string) []string {
	for rest := word[1:]; rest != ""; rest = rest[1:] {
		name, text := "-"+rest[:1], rest[1:]
		o := line.option(name)
		switch {
		case o == nil:
			unknown, _, _ := strings.Cut(word, "=")
			line.fail(line.unknownOption(unknown))
			return args
		case strings.HasPrefix(text, "="):
			line.give(o, text[1:])
			return args
		case o.hint == "":
			line.give(o, "true")
		case text == "":
			return line.valueFrom(args, o, name)
		default:
			line.give(o, text)
			return args
		}
	}
	return args
}

// option returns the option with a name such as --queue or -q, or nil.
func (line *Line) option(name string) *Option {
	for _, o := range line.options {
		if name == "--"+o.name || o.short != "" && name == "-"+o.short {
			return o
		}
	}
	return nil
}

// valueFrom takes an option's value from the next argument. It returns the
// remaining arguments.
func (line *Line) valueFrom(args []string, o *Option, name string) []string {
	if len(args) == 0 {
		line.missingValue = o
		line.fail(ui.Usage("%s needs a value: --%s %s", name, o.name, o.hint))
		return nil
	}
	line.give(o, args[0])
	return args[1:]
}

// give checks and stores a value that the user gave for an option.
func (line *Line) give(o *Option, text string) {
	err := o.value.check(text)
	if field, ok := errors.AsType[*jobs.FieldError](err); ok { // its text has the value
		err = ui.Usage("--%s: %s", o.name, field.Msg)
	} else if err != nil {
		err = ui.Usage("--%s %q: %v", o.name, text, err)
	}
	if err != nil {
		line.fail(err)
		return
	}
	if strings.IndexByte(text, 0) >= 0 {
		line.fail(ui.Usage("--%s %q: holds a NUL byte", o.name, text))
	}

	line.given = append(line.given, givenOption{o, text})
}

// environment adds the options that only environment variables set. An empty
// variable counts as unset. Commas separate the values of a repeatable option.
func (line *Line) environment(getenv func(string) string) {
	for _, o := range line.options {
		if o.env == "" || getenv(o.env) == "" || line.has(o.name) {
			continue
		}

		texts := []string{getenv(o.env)}
		if o.value.repeats() {
			texts = strings.Split(texts[0], ",")
		}

		for _, text := range texts {
			if err := o.value.check(text); err != nil {
				line.fail(ui.Usage("$%s %q: %v", o.env, text, err))
				break
			}
			line.given = append(line.given, givenOption{o, text})
		}
	}
}

func (line *Line) fail(err error) {
	if line.err == nil {
		line.err = err
	}
}

func (line Line) has(name string) bool {
	return slices.ContainsFunc(line.given, func(g givenOption) bool { return g.option.name == name })
}

// last returns the last text of an option, or an empty string.
func (line Line) last(name string) string {
	for _, g := range slices.Backward(line.given) {
		if g.option.name == name {
			return g.text
		}
	}
	return ""
}

// isSet reports whether an option without a value was given.
func (line Line) isSet(name string) bool {
	v, _ := parseBool(line.last(name))
	return v
}
