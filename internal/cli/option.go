package cli

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
)

// Option is a flag with a long name, an optional letter and an optional value. All flags of this program are Options. urfave/cli knows only
// the long names, because Parse replaces letters by long names. If urfave/cli knew both names of an option, it would set a repeatable value
// twice.
type Option struct {
	name, short string
	hint        string // placeholder of the value, such as NAME in "--queue NAME"; empty if the option takes no value
	usage       string // help text without the default
	usual       string // the default as the help names it; empty if the help names no default
	absent      bool   // if true, the user cannot type the option; the command has it only because shared code reads its default
	group       string // heading above the option in the help; empty for OPTIONS
	env         string // environment variable for the value; empty if there is none
	value       optionValue
}

// optionValue is the value of an option. The method "check" returns an error if a text is not a valid value for the option. It does not set
// the option.
type optionValue interface {
	flag.Value
	check(text string) error
	repeats() bool
}

func (o *Option) Names() []string               { return []string{o.name} }
func (o *Option) IsSet() bool                   { return false } // urfave/cli needs this method but does not call it
func (o *Option) Apply(set *flag.FlagSet) error { set.Var(o.value, o.name, o.usage); return nil }

// String returns the name of the option as in the help.
func (o *Option) String() string {
	text := "    --" + o.name
	if o.short != "" {
		text = "-" + o.short + ", --" + o.name
	}
	if o.hint != "" {
		text += " " + o.hint
	}
	return text
}

// Default sets the text that the help shows as the default. It returns o.
func (o *Option) Default(text string) *Option {
	o.usual = text
	return o
}

// description returns the help text of the option with its default.
func (o *Option) description() string {
	if o.usual == "" {
		return o.usage
	}
	return o.usage + " (default: " + o.usual + ")"
}

// setting is an optionValue of type T. The function "parse" converts a text to a value. If the user may repeat the option, the function
// "add" appends the new value to the old one. If the user may not repeat it, "add" is nil.
type setting[T any] struct {
	value T
	parse func(string) (T, error)
	add   func(T, T) T
	bare  bool // whether the option takes no value, such as --json
}

func (s *setting[T]) Set(text string) error {
	v, err := s.parse(text)
	if err == nil && s.add != nil {
		v = s.add(s.value, v)
	}
	if err == nil {
		s.value = v
	}
	return err
}

func (s *setting[T]) String() string          { return fmt.Sprint(s.value) }
func (s *setting[T]) IsBoolFlag() bool        { return s.bare }
func (s *setting[T]) repeats() bool           { return s.add != nil }
func (s *setting[T]) check(text string) error { _, err := s.parse(text); return err }

// Get returns the value of an option, or its default. The comment of the function that creates the option names the type T.
func Get[T any](c *Context, name string) T { return c.Generic(name).(*setting[T]).value }

// Alone reports whether name is the only option that was typed. Global options,
// such as --json, don't count.
func Alone(c *Context, name string) bool {
	globals := GlobalOptions()
	return !slices.ContainsFunc(c.LocalFlagNames(), func(other string) bool {
		return other != name && !slices.ContainsFunc(globals, func(o *Option) bool { return o.name == other })
	})
}

// The following functions create options. Their parameter "names" is the long name, sometimes with a letter: "queue" or "queue q". Their
// parameter "hint" stands for the value in the help. Get reads the value of an option. The comment of each function names the type argument
// for Get; for Scalar it is T.

func Scalar[T any](names, hint, usage string, value T, parse func(string) (T, error)) *Option {
	name, short, _ := strings.Cut(names, " ")
	return &Option{name: name, short: short, hint: hint, usage: usage, value: &setting[T]{value: value, parse: parse}}
}

// Repeated returns an option that the user may repeat. The value is a list with all elements. Read it with Get[[]T].
func Repeated[T any](names, hint, usage string, parse func(string) ([]T, error)) *Option {
	name, short, _ := strings.Cut(names, " ")
	return &Option{name: name, short: short, hint: hint, usage: usage, value: &setting[[]T]{parse: parse,
		add: func(old, more []T) []T { return append(slices.Clip(old), more...) }}}
}

// The function One converts a parser for one element to the parser that Repeated needs.
func One[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) ([]T, error) {
		v, err := parse(text)
		return []T{v}, err
	}
}

// BoolOption returns an option without a value. Read it with Get[bool] or c.Bool.
func BoolOption(names, usage string) *Option {
	o := Scalar(names, "", usage, false, parseBool)
	o.value.(*setting[bool]).bare = true
	return o
}

// TextOption returns an option for any text. Read it with Get[string] or c.String.
func TextOption(names, hint, usage, value string) *Option {
	return Scalar(names, hint, usage, value, func(text string) (string, error) { return text, nil })
}

// ChoiceOption returns an option for one of the given words. Read it with Get[string] or c.String.
func ChoiceOption(names, usage, value string, words ...string) *Option {
	return Scalar(names, strings.Join(words, "|"), usage, value, func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", errors.New("invalid value; use one of " + strings.Join(words, ", "))
		}
		return text, nil
	})
}

// IntOption returns an option for an integer that is not less than low. Read it with Get[int] or c.Int.
func IntOption(names, hint, usage string, value, low int) *Option {
	return Scalar(names, hint, usage, value, func(text string) (int, error) { return ParseInt(text, low) })
}

// DurationOption returns an option for a duration, which the help calls DUR. Read it with Get[time.Duration].
func DurationOption(names, usage string, value time.Duration) *Option {
	return Scalar(names, "DUR", usage, value, humanize.ParseDuration)
}

// SizeOption returns an option for a size in bytes, which the help calls SIZE. Read it with Get[int64].
func SizeOption(names, usage string, value int64) *Option {
	return Scalar(names, "SIZE", usage, value, humanize.ParseSize)
}

// hintTime and hintWhen stand for times in the help. If the help of a command contains one of them, it also lists the formats of times.
const (
	hintTime = "TIME"
	hintWhen = "WHEN"
)

// WhenOption returns an option for a time in the past, which the help calls WHEN. Read it with Get[time.Time].
func (a *App) WhenOption(names, usage string) *Option {
	return Scalar(names, hintWhen, usage, time.Time{}, func(text string) (time.Time, error) {
		return humanize.ParseWhen(text, a.Now(), time.Local)
	})
}

// GlobalOptions returns the options that all commands have. The user may also type them before the name of the command.
func GlobalOptions() []*Option {
	busy := DurationOption("busy-timeout", "wait at most this long for a busy database; then exit with status 75", 10*time.Second).
		Default("10s")
	busy.env = "RUNNER_BUSY_TIMEOUT"
	unsafe := BoolOption("unsafe-fs", "accept a database on a network filesystem")
	unsafe.env = "RUNNER_UNSAFE_FS"
	return []*Option{
		TextOption("db", "PATH", "database: a file or postgres://…; $RUNNER_DB", ""), // env is empty: FindDatabase reads $RUNNER_DB
		BoolOption("json", "print JSON Lines; print errors as JSON on stderr"),
		ChoiceOption("color", "print colours; auto obeys $NO_COLOR and $CLICOLOR_FORCE", "auto", "auto", "always", "never").Default("auto"),
		busy, unsafe,
		BoolOption("verbose v", "print database path and causes of errors on stderr"),
		BoolOption("help h", "print this text"),
		BoolOption("version V", "print the version, commit and schema of runner"),
	}
}

// The options below belong to several commands.

func FormatOption() *Option {
	return TextOption("format", "TEMPLATE", "Go template for each record; keys as in --json", "")
}

func RevealOption() *Option {
	return BoolOption("reveal", "show the input and the values of variables")
}

// Group sets the heading of a list of options in the help.
func Group(heading string, list ...Flag) []Flag {
	for _, f := range list {
		f.(*Option).group = heading
	}
	return list
}

// The function Without marks the options with the given names: the user cannot type them, and the help does not show them.
func Without(list []Flag, names ...string) []Flag {
	for _, f := range list {
		o := f.(*Option)
		o.absent = o.absent || slices.Contains(names, o.name)
	}
	return list
}

// Reword replaces the help of an option.
func Reword(list []Flag, name, usage string) {
	for _, f := range list {
		if o := f.(*Option); o.name == name {
			o.usage = usage
		}
	}
}

func YesOption() *Option { return BoolOption("yes y", "do not ask for confirmation") }

func DryRunOption() *Option {
	return BoolOption("dry-run", "print what would change, and change nothing")
}

// optionsOf returns the options of a command without the global options.
func optionsOf(c *Command) []*Option {
	var list []*Option
	for _, f := range c.Flags {
		if o, ok := f.(*Option); ok && !o.absent {
			list = append(list, o)
		}
	}
	return list
}

// FromEnvironment lets environment variables set the options in the list. For
// example, RUNNER_WRITE_EVERY sets --write-every. Only runner work and runner
// serve have such variables.
func FromEnvironment(list []Flag) []Flag {
	for _, f := range list {
		o := f.(*Option)
		o.env = envName(o.name)
	}
	return list
}

// envName returns the name of the environment variable for an option of "runner work" or "runner serve".
func envName(option string) string {
	return "RUNNER_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

func parseBool(text string) (bool, error) {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New("invalid value; use true or false")
	}
	return v, nil
}
