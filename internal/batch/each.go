package batch

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/runner/internal/failure"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskjson"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The type Each describes the tasks of enqueue --each: one command for each line of a file.
type Each struct {
	Words []string // words of the command, with placeholders
	Shell string   // script of --shell, whose first parameter is the line; Words is then empty
	Null  bool     // if true, a NUL byte ends a line instead of a newline
	Label bool     // if true, each task gets its line as label
}

// These placeholders are replaced in the words of a command. They are the same as in GNU parallel.
var placeholders = []struct {
	text  string
	value func(line string) string
}{
	{"{}", func(line string) string { return line }},
	{"{.}", withoutExtension},
	{"{/}", baseName},
	{"{/.}", func(line string) string { return withoutExtension(baseName(line)) }},
	{"{//}", dirName},
}

// baseName returns the part of a path after its last separator.
func baseName(path string) string { return path[lastSeparator(path)+1:] }

// dirName returns the part of a path before its last name, as dirname does: "."
// if the path has no other part.
func dirName(path string) string {
	for len(path) > 1 && os.IsPathSeparator(path[len(path)-1]) {
		path = path[:len(path)-1]
	}
	i := lastSeparator(path)
	if i < 0 {
		return "."
	}
	for i > 0 && os.IsPathSeparator(path[i-1]) {
		i--
	}
	return path[:max(i, 1)] // the directory of "/a" is "/"
}

// withoutExtension removes the extension from a path. The extension is the last dot of the base name and the text after it.
func withoutExtension(path string) string {
	if i := strings.LastIndexByte(path, '.'); i > lastSeparator(path) {
		return path[:i]
	}
	return path
}

func lastSeparator(path string) int {
	for i := len(path) - 1; i >= 0; i-- {
		if os.IsPathSeparator(path[i]) {
			return i
		}
	}
	return -1
}

// pattern is a parsed word of the command. The field "texts" has the text before, between and after the placeholders of the word.
type pattern struct {
	texts  []string
	values []int // the placeholders, as indexes of the variable "placeholders"
}

func newPattern(word string) pattern {
	p := pattern{texts: []string{""}}
	for word != "" {
		found := -1
		if word[0] == '{' {
			for i := range placeholders {
				if strings.HasPrefix(word, placeholders[i].text) {
					found = i
				}
			}
		}
		if found < 0 {
			p.texts[len(p.texts)-1] += word[:1]
			word = word[1:]
			continue
		}
		p.values, p.texts, word = append(p.values, found), append(p.texts, ""), word[len(placeholders[found].text):]
	}
	return p
}

// wordFor returns the word for a line: it replaces the placeholders by their values.
func (p pattern) wordFor(line string) string {
	if len(p.values) == 0 {
		return p.texts[0]
	}
	var b strings.Builder
	for i, text := range p.texts {
		if b.WriteString(text); i < len(p.values) {
			b.WriteString(placeholders[p.values[i]].value(line))
		}
	}
	return b.String()
}

// hasPlaceholder reports whether a word contains a placeholder.
func hasPlaceholder(word string) bool { return len(newPattern(word).values) > 0 }

// Validate returns an error if the command of --each cannot do what the user probably wants.
func (e *Each) Validate() error {
	switch {
	case e.Shell == "":
		return nil
	case runtime.GOOS == "windows":
		return failure.Exclusive("--each", "--shell").Because("the shell of Windows cannot take the line as a parameter")
	case hasPlaceholder(e.Shell) && !slices.ContainsFunc([]string{"$1", "$@", "$*", "${1", "${@", "${*"},
		func(use string) bool { return strings.Contains(e.Shell, use) }):
		return failure.Usage("--shell has a placeholder; with --each the script gets the line as its parameter").Hint(`"$1" in place of {}`)
	}
	return nil
}

// lineCommand makes a Spec for each line of --each. It is safe for concurrent use.
type lineCommand struct {
	patterns []pattern
	path     string // path of the shell; empty without --shell
	label    bool
	text     bool // whether all words of the command are valid UTF-8
	plain    bool // whether every short line makes a valid command; see surelyValid
}

// If a command and a line do not exceed these limits, the arguments of the task are never too long: their JSON is shorter than
// taskspec.MaxArgs. A byte of an argument becomes at most six bytes of JSON.
const (
	shortLine    = 4096     // maximum bytes of a line; no path on Linux is longer
	shortCommand = 32 << 10 // maximum bytes of the words of the command
	fewReplaced  = 16       // maximum number of placeholders in the command
)

// surelyValid reports whether a line certainly makes a valid command. The line must be short and contain no NUL byte. The command must not
// exceed the limits shortCommand and fewReplaced. Its first word, the program, must have no placeholder. If surelyValid returns false, the
// line may be valid or invalid: the caller must make and validate the Spec.
func (c *lineCommand) surelyValid(text []byte) bool {
	return c.plain && len(text) <= shortLine && bytes.IndexByte(text, 0) < 0
}

func newLineCommand(e *Each) *lineCommand {
	c := &lineCommand{label: e.Label, text: utf8.ValidString(strings.Join(e.Words, "")) && utf8.ValidString(e.Shell)}
	words := e.Words
	if e.Shell != "" {
		shell := jobs.Shell(e.Shell)
		for _, word := range append(shell.Argv, "sh") {
			c.patterns = append(c.patterns, pattern{texts: []string{word}})
		}
		c.path, words = shell.Path, []string{"{}"}
	}
	used := 0
	for _, word := range words {
		p := newPattern(word)
		used += len(p.values)
		c.patterns = append(c.patterns, p)
	}
	if used == 0 {
		c.patterns = append(c.patterns, newPattern("{}"))
	}
	size := len(e.Shell)
	for _, word := range words {
		size += len(word) + 1
	}
	c.plain = len(c.patterns[0].values) == 0 && used <= fewReplaced && size <= shortCommand
	return c
}

// fill sets the fields of s that depend on the line.
func (c *lineCommand) fill(s *jobs.Spec, line string) error {
	argv := make([]string, len(c.patterns))
	for i := range c.patterns {
		argv[i] = c.patterns[i].wordFor(line)
	}
	if strings.IndexByte(line, 0) >= 0 {
		return failure.Usage("holds a NUL byte, which no argument can hold").Hint("-0, if NUL separates the names")
	}
	var err error
	if c.text && utf8.ValidString(line) { // encode the words directly, because jobs.Command.With takes twice as long
		s.Args, err = taskjson.Marshal(argv)
	} else {
		made := jobs.Command{Argv: argv}.With()
		s.Args, err = made.Args, made.Err
	}
	if err != nil {
		return err
	}
	s.Job, s.Path = jobs.CommandJob, c.path
	if c.label {
		s.Label = humanize.Cut(humanize.Safe(line), taskspec.MaxText)
	}
	return nil
}

// The method "each" makes the Spec of one line of --each. The caller may overwrite text afterwards, because the Spec contains a copy.
func (l *lineReader) each(text []byte) (jobs.Spec, lineNames, error) {
	s := l.defaults()
	err := l.command.fill(&s, string(text))
	if err == nil {
		err = l.complete(&s)
	}
	return s, lineNames{}, err
}
