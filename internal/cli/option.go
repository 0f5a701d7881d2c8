package cli

import (
	"errors"
	"flag"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
)

// Option is a flag with a long name, an optional letter and an optional value.
// All flags of this program are Options. urfave/cli knows only the long names
// (Parse replaces letters): with both, it would set a repeatable value twice.
type Option struct {
	name, short string
	hint        string // placeholder of the value, such as NAME in "--queue NAME"; empty if the option takes no value
	usage       string // help text without the default
	usual       string // the default as the help names it; empty if the help names none
	group       string // heading above the option in the help; empty for OPTIONS
	env         string // environment variable for the value; empty if there is none
	value       optionValue
}

// optionValue writes an option's value to the variable of its command. check
// returns an error if text isn't a valid value, and writes nothing.
type optionValue interface {
	flag.Value
	check(text string) error
	repeats() bool
}

func (o *Option) Names() []string               { return []string{o.name} }
func (o *Option) IsSet() bool                   { return false } // urfave/cli needs this method but doesn't call it
func (o *Option) Apply(set *flag.FlagSet) error { set.Var(o.value, o.name, o.usage); return nil }

// String returns the option's name as in the help.
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

// description returns the help text with the default.
func (o *Option) description() string {
	if o.usual == "" {
		return o.usage
	}
	return o.usage + " (default: " + o.usual + ")"
}

type setting[T any] struct {
	to    *T
	parse func(string) (T, error)
	add   func(T, T) T // joins the values of an option that may be repeated; nil for others
	bare  bool         // whether the option takes no value, such as --json
}

func (s *setting[T]) Set(text string) error {
	v, err := s.parse(text)
	if err != nil {
		return err
	}
	if s.add != nil {
		v = s.add(*s.to, v)
	}
	*s.to = v
	return nil
}

func (s *setting[T]) String() string          { return "" } // urfave/cli needs no text of the value
func (s *setting[T]) IsBoolFlag() bool        { return s.bare }
func (s *setting[T]) repeats() bool           { return s.add != nil }
func (s *setting[T]) check(text string) error { _, err := s.parse(text); return err }

// The functions below create options. An option writes its value to a variable,
// which holds the default. names is the long name, sometimes with a letter:
// "queue" or "queue q". hint stands for the value in the help.

func newOption(names, hint, usage string, value optionValue) *Option {
	name, short, _ := strings.Cut(names, " ")
	return &Option{name: name, short: short, hint: hint, usage: usage, value: value}
}

func Value[T any](to *T, names, hint, usage string, parse func(string) (T, error)) *Option {
	return newOption(names, hint, usage, &setting[T]{to: to, parse: parse})
}

// Values returns an option that may be repeated: the variable gets all
// elements.
func Values[T any](to *[]T, names, hint, usage string, parse func(string) ([]T, error)) *Option {
	add := func(old, more []T) []T { return append(slices.Clip(old), more...) }
	return newOption(names, hint, usage, &setting[[]T]{to: to, parse: parse, add: add})
}

// One turns the parser of an element into one for Values.
func One[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) ([]T, error) {
		v, err := parse(text)
		return []T{v}, err
	}
}

// Bool returns an option without a value.
func Bool(to *bool, names, usage string) *Option {
	return newOption(names, "", usage, &setting[bool]{to: to, parse: parseBool, bare: true})
}

// Text returns an option for any text.
func Text(to *string, names, hint, usage string) *Option {
	return Value(to, names, hint, usage, func(text string) (string, error) { return text, nil })
}

// Choice returns an option for one of the words.
func Choice[S ~string](to *S, names, usage string, words ...S) *Option {
	var list []string
	for _, word := range words {
		list = append(list, string(word))
	}

	return Value(to, names, strings.Join(list, "|"), usage, func(text string) (S, error) {
		if !slices.Contains(list, text) {
			return "", errors.New("invalid value; use one of " + strings.Join(list, ", "))
		}
		return S(text), nil
	})
}

// Int returns an option for an integer that isn't less than low.
func Int(to *int, names, hint, usage string, low int) *Option {
	return Value(to, names, hint, usage, func(text string) (int, error) { return ParseInt(text, low) })
}

// Duration returns an option for a duration, which the help calls DUR.
func Duration(to *time.Duration, names, usage string) *Option {
	return Value(to, names, "DUR", usage, humanize.ParseDuration)
}

// If the help of a command contains one of these words for a time, it also
// lists the formats of times.
const (
	hintTime = "TIME"
	hintWhen = "WHEN"
)

// When returns an option for a time in the past, which the help calls WHEN.
func (a *App) When(to *time.Time, names, usage string) *Option {
	return Value(to, names, hintWhen, usage, func(text string) (time.Time, error) {
		return humanize.ParseWhen(text, a.Now(), time.Local)
	})
}

// GlobalOptions returns the options that all commands have. They may also stand
// before the name of the command.
func (a *App) GlobalOptions() []*Option {
	busy := Duration(&a.BusyTimeout, "busy-timeout", "wait at most this long for a busy database; then exit with status 75").
		Default("10s")
	busy.env = "RUNNER_BUSY_TIMEOUT"
	unsafe := Bool(&a.UnsafeFS, "unsafe-fs", "accept a database on a network filesystem")
	unsafe.env = "RUNNER_UNSAFE_FS"

	// The other variables aren't read: the line has these options, too.
	var on bool
	var color string
	return []*Option{
		Text(&a.db, "db", "PATH", "database: a file or postgres://…; $RUNNER_DB"), // env is empty: FindDatabase reads $RUNNER_DB
		Bool(&on, "json", "print JSON Lines; print errors as JSON on stderr"),
		Choice(&color, "color", "print colours; auto obeys $NO_COLOR and $CLICOLOR_FORCE", "auto", "always", "never").
			Default("auto"),
		busy,
		unsafe,
		Bool(&on, "verbose v", "print database path and causes of errors on stderr"),
		Bool(&on, "help h", "print this text"),
		Bool(&on, "version V", "print the version, commit and schema of runner"),
	}
}

// Alone reports whether name is the only option that was typed, apart from
// global options such as --json.
func (a *App) Alone(c *Context, name string) bool {
	return !slices.ContainsFunc(c.LocalFlagNames(), func(other string) bool {
		return other != name && !slices.ContainsFunc(a.globals, func(o *Option) bool { return o.name == other })
	})
}

// The options below belong to several commands.

func (a *App) FormatOption() *Option {
	return Text(&a.format, "format", "TEMPLATE", "Go template for each record; keys as in --json")
}

func RevealOption(to *bool) *Option {
	return Bool(to, "reveal", "show the input and the values of variables")
}

func DryRunOption(to *bool) *Option {
	return Bool(to, "dry-run", "print what would change, and change nothing")
}

// Group sets the heading of a list of options in the help.
func Group(heading string, list ...Flag) []Flag {
	for _, f := range list {
		f.(*Option).group = heading
	}
	return list
}

// Without removes the options with the given names.
func Without(list []Flag, names ...string) []Flag {
	return slices.DeleteFunc(list, func(f Flag) bool { return slices.Contains(names, f.(*Option).name) })
}

// Reword replaces the help of an option.
func Reword(list []Flag, name, usage string) {
	for _, f := range list {
		if o := f.(*Option); o.name == name {
			o.usage = usage
		}
	}
}

// optionsOf returns the options of a command without the global options.
func optionsOf(c *Command) (list []*Option) {
	for _, f := range c.Flags {
		list = append(list, f.(*Option))
	}
	return list
}

// FromEnvironment lets environment variables set the options in the list. For
// example, RUNNER_WRITE_EVERY sets --write-every. Only runner work and runner
// serve have such variables.
func FromEnvironment(list []Flag) []Flag {
	for _, f := range list {
		o := f.(*Option)
		o.env = "RUNNER_" + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
	}
	return list
}

func parseBool(text string) (bool, error) {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New("invalid value; use true or false")
	}
	return v, nil
}
