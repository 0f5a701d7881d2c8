package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

// Context is a parsed command line: what the Action of a command gets.
type Context struct {
	context.Context
	Command *Command // nil if no command was named
	Path    []string // names of the command and its groups: "schedule", "add"
	Words   []string // arguments that are neither options nor command names

	missingValue *Option    // option at the end of the line whose value is missing; nil if there is none
	commands     []*Command // commands that may follow in the line
	globals      []*Option
	options      []*Option // options that may follow in the line
	err          error     // first error in the line
}

// First returns the first word, or an empty string if there is none.
func (c *Context) First() string {
	if len(c.Words) == 0 {
		return ""
	}
	return c.Words[0]
}

// IsSet reports whether the user or a variable has set the option with this
// name. The command may lack the option.
func (c *Context) IsSet(name string) bool {
	o := c.option("--" + name)
	return o != nil && o.given != nil
}

// Parse parses the arguments after the program's name. Options may stand before, between and after the other words. After "--" there are no
// options. Global options may also stand before the name of the command. If runner's command takes a command of the user, options end at
// the first word of the user's command.
//
// If the user repeats an option with a single value, the last value counts. An option at any position overrides its environment variable.
// Parse reads the rest of the line after an error, because --json in the rest decides the format of the error.
func Parse(list []*Command, globals []*Option, args []string, getenv func(string) string) (*Context, error) {
	c := &Context{commands: list, globals: globals, options: globals}
	all := args
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--" && c.Command != nil && c.Command.Subcommands == nil:
			if strings.Join(c.Path, " ") == "edit" { // the command "edit" needs to know which words are ids: those before "--"
				c.Words = append(c.Words, word)
			}
			if n := wordsBeforeCommand(c.Path); len(c.Words) < n { // only "schedule add" needs a word before "--"
				c.fail(ui.Usage("%s needs a NAME before --", strings.Join(c.Path, " ")).
					Hint("runner schedule add NAME --cron EXPR -- COMMAND"))
			}
			c.Words, args = append(c.Words, args...), nil
		case word == "--": // before the name of the command, "--" has no meaning
		case len(word) > 1 && word[0] == '-':
			args = c.flag(word, args)
		case c.Command == nil && c.err == nil:
			c.enter(word, args)
		case c.Command != nil && c.Command.Subcommands != nil:
			c.enter(word, args)
		default:
			c.Words = append(c.Words, word)
			if stopsAt := wordsBeforeCommand(c.Path); stopsAt >= 0 && len(c.Words) > stopsAt {
				c.Words, args = append(c.Words, args...), nil
			}
		}
	}
	own := all // all arguments except the user's command, whose words need not be UTF-8
	if n := wordsBeforeCommand(c.Path); n >= 0 {
		own = all[:len(all)-max(len(c.Words)-n, 0)]
	}
	for i, arg := range own {
		if !utf8.ValidString(arg) {
			c.err = ui.Usage("argument %d, %q, is not UTF-8", i+1, arg)
			break
		}
	}
	c.environment(getenv)
	return c, c.err
}

// wordsBeforeCommand returns how many arguments stand before the command that a task will run. It returns -1 for a command of runner whose
// arguments contain no such command.
func wordsBeforeCommand(path []string) int {
	switch strings.Join(path, " ") {
	case "enqueue", "run":
		return 0
	case "schedule add":
		return 1 // one argument: the NAME of the schedule
	}
	return -1
}

// enter handles the name of a command: this command becomes the current one. The parameter "args" contains the words after it.
func (c *Context) enter(word string, args []string) {
	if word == "help" && c.Command == nil { // "runner help show" is "runner show --help"
		c.give(c.option("--help"), "true")
		return
	}
	for _, sub := range c.commands {
		if sub.Name == word || slices.Contains(sub.Aliases, word) {
			c.Command, c.Path, c.commands = sub, append(c.Path, sub.Name), sub.Subcommands
			c.options = append(slices.Clip(sub.Flags), c.globals...)
			return
		}
	}
	f := ui.Usage("unknown command %q", strings.Join(append(c.Path, word), " "))
	c.fail(f.Hint("%s", c.commandHint(word, args)))
}

// flag reads an argument that begins with a dash. If an option in this argument needs a value, flag may read the value from the next
// argument. It returns the remaining arguments.
func (c *Context) flag(word string, args []string) []string {
	name, text, hasText := strings.Cut(word, "=")
	if !strings.HasPrefix(name, "--") {
		isLong := c.option("-"+name) != nil || c.optionSynonym(name) != "" // a long name after a single dash: -queue
		if len(name) == 2 || !isLong {
			return c.letters(word, args)
		}
		c.fail(c.unknown(name))
		return args
	}
	o := c.option(name)
	switch {
	case o == nil:
		c.fail(c.unknown(name))
	case hasText:
		c.give(o, text)
	case o.hint == "":
		c.give(o, "true")
	default:
		return c.valueFrom(args, o, name)
	}
	return args
}

// letters reads an argument with short options. As in getopt, several letters can follow one dash, and a value can follow its letter: -fn5
// means -f -n 5. There may be an equals sign before the value. The method returns the remaining arguments.
func (c *Context) letters(word string, args []string) []string {
	for rest := word[1:]; rest != ""; rest = rest[1:] {
		name, text := "-"+rest[:1], rest[1:]
		o := c.option(name)
		switch {
		case o == nil:
			unknown, _, _ := strings.Cut(word, "=")
			c.fail(c.unknown(unknown))
			return args
		case strings.HasPrefix(text, "="):
			c.give(o, text[1:])
			return args
		case o.hint == "":
			c.give(o, "true")
		case text == "":
			return c.valueFrom(args, o, name)
		default:
			c.give(o, text)
			return args
		}
	}
	return args
}

// option returns the option with a name such as --queue or -q, or nil if there is none.
func (c *Context) option(name string) *Option {
	for _, o := range c.options {
		if name == "--"+o.Name || o.short != "" && name == "-"+o.short {
			return o
		}
	}
	return nil
}

// valueFrom takes the value of an option from the next argument. It returns the remaining arguments.
func (c *Context) valueFrom(args []string, o *Option, name string) []string {
	if len(args) == 0 {
		c.missingValue = o
		c.fail(ui.Usage("%s needs a value: --%s %s", name, o.Name, o.hint))
		return nil
	}
	c.give(o, args[0])
	return args[1:]
}

// give sets an option to the value that the user gave.
func (c *Context) give(o *Option, text string) {
	err := o.set(text)
	if field, ok := errors.AsType[*jobs.FieldError](err); ok { // its text has the value
		err = ui.Usage("--%s: %s", o.Name, field.Msg)
	} else if err != nil {
		err = ui.Usage("--%s %q: %v", o.Name, text, err)
	}
	if err == nil && strings.IndexByte(text, 0) >= 0 {
		err = ui.Usage("--%s %q: holds a NUL byte", o.Name, text)
	}
	c.fail(err)
}

// environment adds the options that environment variables set, unless they are on the command c. An empty variable counts as unset. If
// an option is repeatable, commas separate the values.
func (c *Context) environment(getenv func(string) string) {
	for _, o := range c.options {
		if o.env == "" || getenv(o.env) == "" || o.given != nil {
			continue
		}
		texts := []string{getenv(o.env)}
		if o.value.repeats() {
			texts = strings.Split(texts[0], ",")
		}
		for _, text := range texts {
			if err := o.set(text); err != nil {
				c.fail(ui.Usage("$%s %q: %v", o.env, text, err))
				break
			}
		}
	}
}

// fail keeps the first error of the line.
func (c *Context) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}
