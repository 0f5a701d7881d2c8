package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/runner/internal/failure"
)

// Parse parses the arguments after the program's name. Options may stand before, between and after the other words. After "--" there are no
// options. Global options may also stand before the name of the command. If runner's command takes a command of the user, options end at
// the first word of the user's command.
//
// If the user repeats an option with a single value, the last value counts. An option at any position overrides its environment variable.
// Parse reads the rest of the line after an error, because --json in the rest decides the format of the error.
func Parse(list []*Command, globals []*Option, args []string, getenv func(string) string) (*Context, error) {
	c := &Context{commands: list, globals: globals, options: globals, Dashes: -1}
	all := args
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--" && c.Command != nil && c.Command.Subcommands == nil:
			c.Dashes = len(c.Words)
			c.Words, args = append(c.Words, args...), nil
		case word == "--": // before the name of the command, "--" has no meaning
		case len(word) > 1 && word[0] == '-':
			args = c.flag(word, args)
		case c.Command == nil && c.err == nil, c.Command != nil && c.Command.Subcommands != nil:
			c.enter(word, args)
		default:
			c.Words = append(c.Words, word)
			if c.inUserCommand() {
				c.Words, args = append(c.Words, args...), nil
			}
		}
	}
	own := all // all arguments except the user's command, whose words need not be UTF-8
	if c.inUserCommand() {
		own = all[:len(all)-(len(c.Words)-c.Command.Names)]
	}
	for i, arg := range own {
		if !utf8.ValidString(arg) {
			c.err = failure.Usage("argument %d, %q, is not UTF-8", i+1, arg)
			break
		}
	}
	c.environment(getenv)
	return c, c.err
}

// inUserCommand reports whether the words so far reach into the command that a
// task will run.
func (c *Context) inUserCommand() bool {
	return c.Command != nil && c.Command.TakesCommand && len(c.Words) > c.Command.Names
}

// enter handles the name of a command: this command becomes the current one. The parameter "args" contains the words after it.
func (c *Context) enter(word string, args []string) {
	if word == "help" && c.Command == nil { // "runner help show" is "runner show --help"
		c.give(c.option("--help"), "true")
		return
	}
	if next := commandNamed(c.commands, word); next != nil {
		c.Command, c.Path, c.commands = next, append(c.Path, next.Name), next.Subcommands
		c.options = append(slices.Clip(optionsOf(next)), c.globals...)
		return
	}
	f := failure.Usage("unknown command %q", strings.Join(append(c.Path, word), " "))
	c.fail(f.Hint("%s", c.commandHint(word, args)))
}

func commandNamed(list []*Command, name string) *Command {
	for _, c := range list {
		if c.Name == name || slices.Contains(c.Aliases, name) {
			return c
		}
	}
	return nil
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
		c.fail(failure.Usage("%s needs a value: --%s %s", name, o.Name, o.hint))
		return nil
	}
	c.give(o, args[0])
	return args[1:]
}

// give sets an option to a value that the user gave.
func (c *Context) give(o *Option, text string) {
	if err := o.value.Set(text); err != nil {
		c.fail(failure.Usage("--%s %q: %v", o.Name, text, err))
		return
	}
	if strings.IndexByte(text, 0) >= 0 {
		c.fail(failure.Usage("--%s %q: holds a NUL byte", o.Name, text))
	}
	o.given = true
}

// environment sets options from environment variables, unless they are on the command line. An empty variable counts as unset. If
// an option is repeatable, commas separate the values.
func (c *Context) environment(getenv func(string) string) {
	for _, o := range c.options {
		if o.env == "" || getenv(o.env) == "" || o.given {
			continue
		}
		texts := []string{getenv(o.env)}
		if o.value.repeats() {
			texts = strings.Split(texts[0], ",")
		}
		for _, text := range texts {
			if err := o.value.Set(text); err != nil {
				c.fail(failure.Usage("$%s %q: %v", o.env, text, err))
				break
			}
		}
		o.given = true
	}
}

func (c *Context) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}
