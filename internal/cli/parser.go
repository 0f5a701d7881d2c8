package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/spelling"
)

// Line is a parsed command line. It exists because urfave/cli's parser does not handle all command lines as needed. urfave/cli receives
// the form "runner COMMAND --long=value ... -- WORD ...".
type Line struct {
	Command      *Command // nil if no command was named
	Path         []string // names of the command and its groups: "schedule", "add"
	given        []givenOption
	words        []string // arguments that are neither options nor command names
	missingValue *Option  // the last option, if its value is missing

	globals, options []*Option // options that are valid at this point of the command line
	err              error     // first error
}

type givenOption struct {
	option *Option
	text   string
}

// Parse parses the arguments after the program's name. Options may stand before, between and after words until "--"; global options may
// also stand before the command. If the command takes a command of the user's, options end at the first word of that command.
//
// If a scalar option is repeated, its last value wins. An option wins over its environment variable at any position. Parse reads the rest
// of the line after an error, because --json decides the format of the error.
func Parse(list []*Command, globals []*Option, args []string, getenv func(string) string) (Line, error) {
	line := &Line{globals: globals, options: globals}
	for i, arg := range args {
		if !utf8.ValidString(arg) {
			line.fail(failure.Usage("argument %d, %q, is not UTF-8", i+1, arg))
		}
	}
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--" && line.Command != nil && line.Command.Subcommands == nil:
			line.words, args = append(line.words, args...), nil
		case word == "--": // the command name follows
		case len(word) > 1 && word[0] == '-':
			args = line.flag(word, args)
		case line.Command == nil && line.err == nil:
			list = line.enter(list, word)
		case line.Command != nil && line.Command.Subcommands != nil:
			list = line.enter(list, word)
		default:
			line.words = append(line.words, word)
			if stopsAt := wordsBeforeCommand(line.Path); stopsAt >= 0 && len(line.words) > stopsAt {
				line.words, args = append(line.words, args...), nil
			}
		}
	}
	line.environment(getenv)
	return *line, line.err
}

// wordsBeforeCommand returns how many words belong to runner before the user's command begins. It returns -1 if the command of runner
// takes no command of the user's.
func wordsBeforeCommand(path []string) int {
	switch strings.Join(path, " ") {
	case "enqueue", "run":
		return 0
	case "schedule add":
		return 1 // NAME comes first
	}
	return -1
}

// enter sets the command with this name as the current one and returns its subcommands.
func (line *Line) enter(list []*Command, word string) []*Command {
	if word == "help" && line.Command == nil { // "runner help show" is "runner show --help"
		line.set("help", "true")
		return list
	}
	for _, c := range list {
		if c.HasName(word) {
			line.Command, line.Path = c, append(line.Path, c.Name)
			line.options = append(slices.Clip(optionsOf(c)), line.globals...)
			return c.Subcommands
		}
	}
	var names []string
	for _, c := range list {
		names = append(names, append([]string{c.Name}, c.Aliases...)...)
	}
	prefix := strings.Join(append([]string{"runner"}, line.Path...), " ")
	f := failure.Usage("unknown command %q", strings.Join(append(line.Path, word), " ")).Hint("%s --help", prefix)
	if near := spelling.Nearest(word, names); near != "" {
		f = f.Hint("%s %s", prefix, near)
	}
	if len(line.Path) == 1 && line.Path[0] == "service" && slices.Contains([]string{"status", "start", "stop", "restart"}, word) {
		f = f.Hint("systemctl %s runner", word)
	}
	if instead := synonym(word); instead != "" && len(line.Path) == 0 {
		f = f.Hint("runner %s", instead)
	}
	line.fail(f)
	return list
}

// synonym returns the command for a name that other tools use, or an empty string.
func synonym(word string) string {
	switch word {
	case "install", "daemon", "systemd":
		return "service install"
	case "queues", "stats", "workers":
		return "status"
	case "prune", "clean", "remove":
		return "delete"
	case "exec":
		return "run"
	case "kill", "stop":
		return "cancel"
	case "follow", "tail":
		return "logs -f"
	case "why", "info":
		return "show"
	case "add", "push", "submit":
		return "enqueue"
	case "export":
		return "list --json"
	case "import":
		return "enqueue --batch FILE"
	}
	return ""
}

// flag reads one option and, if it has one, its value. It returns the remaining arguments.
func (line *Line) flag(word string, args []string) []string {
	name, text, hasText := strings.Cut(word, "=")
	i := slices.IndexFunc(line.options, func(o *Option) bool {
		return name == "--"+o.name || o.short != "" && name == "-"+o.short
	})
	if i < 0 {
		line.fail(line.unknown(name))
		return args
	}
	o := line.options[i]
	switch {
	case hasText:
	case o.hint == "":
		text = "true"
	case len(args) == 0:
		line.missingValue = o
		line.fail(failure.Usage("%s needs a value: --%s %s", name, o.name, o.hint))
		return args
	default:
		text, args = args[0], args[1:]
	}
	if err := o.value.check(text); err != nil {
		line.fail(failure.Usage("--%s %q: %v", o.name, text, err))
		return args
	}
	if strings.IndexByte(text, 0) >= 0 {
		line.fail(failure.Usage("--%s %q: holds a NUL byte", o.name, text))
	}
	line.given = append(line.given, givenOption{o, text})
	return args
}

func (line *Line) unknown(name string) *failure.Error {
	where := strings.Join(append([]string{"runner"}, line.Path...), " ")
	f := failure.Usage("unknown option %s of %s", name, where)
	if line.Command == nil {
		return failure.Usage("unknown option %s before the command", name).Hint("runner COMMAND %s", name)
	}
	if len(name) > 2 && name[1] != '-' { // combined letters, or one dash before a long name: -fn 5, -queue
		letter := slices.IndexFunc(line.options, func(o *Option) bool { return o.short != "" && o.short == name[1:2] })
		word := slices.IndexFunc(line.options, func(o *Option) bool { return o.name == name[1:] })
		switch {
		case word >= 0:
			return f.Hint("-%s", name)
		case letter >= 0:
			return f.Because("letters are not combined; give each its own dash").Hint("-%s -%s", name[1:2], name[2:])
		}
	}
	var names []string
	for _, o := range line.options {
		names = append(names, "--"+o.name)
	}
	if near := spelling.Nearest(name, names); near != "" && len(name) > 3 {
		return f.Hint("%s", near)
	}
	return f.Hint("%s --help", where)
}

// environment adds the options that are not on the command line but whose variable is set. An empty variable counts as unset. Commas
// separate the elements of lists.
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
				line.fail(failure.Usage("$%s %q: %v", o.env, text, err))
				break
			}
			line.given = append(line.given, givenOption{o, text})
		}
	}
}

// argv returns the command line in the form that urfave/cli parses correctly.
func (line Line) argv() []string {
	argv := append([]string{"runner"}, line.Path...)
	for _, g := range line.given {
		argv = append(argv, "--"+g.option.name+"="+g.text)
	}
	return append(append(argv, "--"), line.words...)
}

func (line *Line) fail(err error) {
	if line.err == nil {
		line.err = err
	}
}

func (line *Line) set(name, text string) {
	for _, o := range line.options {
		if o.name == name {
			line.given = append(line.given, givenOption{o, text})
		}
	}
}

func (line Line) has(name string) bool {
	return slices.ContainsFunc(line.given, func(g givenOption) bool { return g.option.name == name })
}

// last returns the text of an option with one value, or an empty string if it was not given.
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
