package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Command is a command of runner, or a group of commands.
type Command struct {
	Name        string
	Aliases     []string
	Category    string // heading above the command in the help of runner
	Usage       string // what the command does, in one line
	UsageText   string // its forms, one per line
	Description string // text of the help: examples, then the rest
	Hidden      bool   // whether help, hints and completion leave the command out
	Flags       []Flag
	Subcommands []*Command
	Action      func(*Context) error // nil for a group

	// TakesCommand says that a user's command follows, after the given number of
	// names. Its words are no options of runner.
	TakesCommand bool
	Names        int
}

// Flag is an option of a command.
type Flag = *Option

// Context is a parsed command line.
type Context struct {
	Context context.Context
	Command *Command // nil if the line names no command
	Path    []string // names of the command and its groups: "schedule", "add"
	Words   []string // arguments that are neither options nor names of commands
	Dashes  int      // how many of Words stand before "--"; -1 without "--"

	missingValue     *Option    // option at the end of the line whose value is missing; nil if there is none
	commands         []*Command // commands that may follow in the line
	globals, options []*Option  // options that may follow in the line
	err              error      // first error in the line
}

// First returns the first of Words, or "" if there are none.
func (c *Context) First() string { return append(slices.Clip(c.Words), "")[0] }

// IsSet reports whether the command line or the environment sets an option. It
// is false if the command doesn't have the option.
func (c *Context) IsSet(name string) bool {
	o := c.option("--" + name)
	return o != nil && o.given
}

// Bool returns the value of an option without a value. It is false if the
// command doesn't have the option.
func (c *Context) Bool(name string) bool { return c.IsSet(name) && Get[bool](c, name) }

// Only reports whether this is the only option of the command that is set.
func (c *Context) Only(name string) bool {
	return !slices.ContainsFunc(optionsOf(c.Command), func(o *Option) bool { return o.given && o.Name != name })
}

// Get returns the value of an option, or its default. The comment of the
// function that creates the option names the type T.
func Get[T any](c *Context, name string) T {
	list := c.globals
	if c.Command != nil {
		list = slices.Concat(list, c.Command.Flags)
	}
	for _, o := range list {
		if o.Name == name {
			return o.value.(*setting[T]).value
		}
	}
	panic(fmt.Sprintf("%s has no option --%s", c.name(), name))
}

// name returns the full name of the command, such as "runner schedule add".
func (c *Context) name() string { return strings.Join(append([]string{"runner"}, c.Path...), " ") }
