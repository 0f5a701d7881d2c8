package cli

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
)

// Option is a flag: a long name, perhaps a letter, and a value. It is the only kind of Flag here. urfave sees the long
// name alone, because permute has already replaced letters: with two names it would set a repeatable value twice.
type Option struct {
	name, short string
	hint        string // NAME in "--queue NAME"; empty: the option takes no value
	usage       string // for the help; ends with the default, if there is one: "... (10s)"
	absent      bool   // read by code that this command shares with another: nobody can type it here
	env         string // the variable that stands in for the option; empty: none
	value       optionValue
}

// optionValue is what an option holds. check says whether text would do, without keeping it.
type optionValue interface {
	flag.Value
	check(text string) error
	repeats() bool
}

func (o *Option) Names() []string               { return []string{o.name} }
func (o *Option) IsSet() bool                   { return false } // urfave asks the flag set first, and that knows
func (o *Option) Apply(set *flag.FlagSet) error { set.Var(o.value, o.name, o.usage); return nil }

// String is the option as the help shows it.
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

// setting is an optionValue of type T, read from its text by parse. One with add may be given several times.
type setting[T any] struct {
	value T
	parse func(string) (T, error)
	add   func(T, T) T
	bare  bool // an option without a value, such as --json
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

// Get returns what an option was given, or its default. T is the type that the option's constructor names.
func Get[T any](c *Context, name string) T { return c.Generic(name).(*setting[T]).value }

// The constructors of options. names is "queue" or "queue q"; hint is the word for the value in the help. What they hold is
// read by get with the type that stands last in their name or in their value.

func Scalar[T any](names, hint, usage string, value T, parse func(string) (T, error)) *Option {
	name, short, _ := strings.Cut(names, " ")
	return &Option{name: name, short: short, hint: hint, usage: usage, value: &setting[T]{value: value, parse: parse}}
}

// Repeated is an option that may be given several times; its values are added up. get[[]T].
func Repeated[T any](names, hint, usage string, parse func(string) ([]T, error)) *Option {
	name, short, _ := strings.Cut(names, " ")
	return &Option{name: name, short: short, hint: hint, usage: usage, value: &setting[[]T]{parse: parse,
		add: func(old, more []T) []T { return append(slices.Clip(old), more...) }}}
}

// One turns a parser of one value into a parser for repeated.
func One[T any](parse func(string) (T, error)) func(string) ([]T, error) {
	return func(text string) ([]T, error) {
		v, err := parse(text)
		return []T{v}, err
	}
}

// BoolOption is an option without a value. get[bool], or c.Bool.
func BoolOption(names, usage string) *Option {
	o := Scalar(names, "", usage, false, parseBool)
	o.value.(*setting[bool]).bare = true
	return o
}

// TextOption holds any text. get[string], or c.String.
func TextOption(names, hint, usage, value string) *Option {
	return Scalar(names, hint, usage, value, func(text string) (string, error) { return text, nil })
}

// ChoiceOption holds one of some words. get[string], or c.String.
func ChoiceOption(names, usage, value string, words ...string) *Option {
	return Scalar(names, strings.Join(words, "|"), usage, value, func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", errors.New("is none of " + strings.Join(words, ", "))
		}
		return text, nil
	})
}

// IntOption holds a whole number of at least low. get[int], or c.Int.
func IntOption(names, hint, usage string, value, low int) *Option {
	return Scalar(names, hint, usage, value, func(text string) (int, error) { return ParseInt(text, low) })
}

// DurationOption holds a DUR. get[time.Duration].
func DurationOption(names, usage string, value time.Duration) *Option {
	return Scalar(names, "DUR", usage, value, timetext.ParseDuration)
}

// SizeOption holds a SIZE in bytes. get[int64].
func SizeOption(names, usage string, value int64) *Option {
	return Scalar(names, "SIZE", usage, value, parseSize)
}

// TimeOption holds a TIME: a moment to come. get[time.Time].
func (a *App) TimeOption(names, usage string) *Option {
	return Scalar(names, "TIME", usage, time.Time{}, func(text string) (time.Time, error) {
		return timetext.ParseTime(text, a.Now(), time.Local)
	})
}

// WhenOption holds a WHEN: a moment gone by. get[time.Time].
func (a *App) WhenOption(names, usage string) *Option {
	return Scalar(names, "WHEN", usage, time.Time{}, func(text string) (time.Time, error) {
		return timetext.ParseWhen(text, a.Now(), time.Local)
	})
}

// CodesOption holds CODES. get[jobs.Codes].
func CodesOption(names, usage string) *Option {
	return Scalar(names, "CODES", usage, jobs.Codes(""), parseCodes)
}

// IdsOption holds IDS, repeatable. get[[]int64].
func IdsOption(names, usage string) *Option { return Repeated(names, "IDS", usage, ParseIDs) }

// GlobalOptions are the options of every command. They may stand before the command, too.
func GlobalOptions() []*Option {
	busy := DurationOption("busy-timeout", "wait this long for the database, then exit 75 (10s)", 10*time.Second)
	busy.env = "RUNNER_BUSY_TIMEOUT"
	unsafe := BoolOption("unsafe-fs", "use a database on a network file system")
	unsafe.env = "RUNNER_UNSAFE_FS"
	return []*Option{
		TextOption("db", "PATH", "the database; $RUNNER_DB", ""), // the variable is read by findDatabase
		BoolOption("json", "JSON Lines on stdout; errors as JSON on stderr"),
		ChoiceOption("color", "colours (auto); $NO_COLOR, $CLICOLOR_FORCE", "auto", "auto", "always", "never"),
		busy, unsafe,
		BoolOption("verbose v", "say more on stderr: database, retries, causes"),
		BoolOption("help h", "this text"),
		BoolOption("version", "versions of runner, SQLite and Go"),
	}
}

// Options that several commands share.

func queueOption() *Option {
	return Repeated("queue q", "NAME", "tasks of this queue; repeatable", One(ParseQueue))
}

func FormatOption() *Option {
	return TextOption("format", "TEMPLATE", "a Go template over the keys of the JSON record", "")
}

func RevealOption() *Option { return BoolOption("reveal", "show the values of env, and input") }

// Without marks options of a list as absent.
func Without(list []Flag, names ...string) []Flag {
	for _, f := range list {
		o := f.(*Option)
		o.absent = o.absent || slices.Contains(names, o.name)
	}
	return list
}

func YesOption() *Option { return BoolOption("yes y", "do not ask") }

func DryRunOption() *Option { return BoolOption("dry-run", "list what would be done; change nothing") }

// optionsOf returns the options of a command, without the global ones.
func optionsOf(c *Command) []*Option {
	var list []*Option
	for _, f := range c.Flags {
		if o, ok := f.(*Option); ok && !o.absent {
			list = append(list, o)
		}
	}
	return list
}

// FromEnvironment gives each option of work (and serve) its variable: --max-wait is RUNNER_MAX_WAIT. No other command's
// options have one.
func FromEnvironment(list []Flag) []Flag {
	for _, f := range list {
		o := f.(*Option)
		o.env = envName(o.name)
	}
	return list
}

// envName is the variable of an option of work.
func envName(option string) string {
	return "RUNNER_" + strings.ToUpper(strings.ReplaceAll(option, "-", "_"))
}

func parseBool(text string) (bool, error) {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New("is neither true nor false")
	}
	return v, nil
}

// FormatterOf returns the formatter of the option --format, or nil if it was not given.
func FormatterOf(c *Context, p *term.Printer) (*record.Formatter, error) {
	if !c.IsSet("format") {
		return nil, nil
	}
	return record.NewFormatter(p, Get[string](c, "format"))
}
