package batch

import (
	"bytes"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"

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
var placeholders = []placeholder{
	{"{}", func(line string) string { return line }},
	{"{.}", withoutExtension},
	{"{/}", baseName},
	{"{/.}", func(line string) string { return withoutExtension(baseName(line)) }},
	{"{//}", dirName},
}

type placeholder struct {
	text  string
	value func(line string) string
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

// hasPlaceholder reports whether a word contains a placeholder.
func hasPlaceholder(word string) bool {
	return slices.ContainsFunc(placeholders, func(p placeholder) bool { return strings.Contains(word, p.text) })
}

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

// lineCommand makes a Spec for each line of --each.
type lineCommand struct {
	Each
	fixed []string // words without placeholders: the shell and its script
	path  string   // path of the shell; empty without --shell
}

func newLineCommand(e Each) *lineCommand {
	switch {
	case e.Shell != "":
		shell := jobs.Shell(e.Shell)
		e.Words = []string{"{}"}
		return &lineCommand{Each: e, fixed: append(shell.Argv, "sh"), path: shell.Path}
	case !slices.ContainsFunc(e.Words, hasPlaceholder):
		e.Words = append(slices.Clone(e.Words), "{}")
	}
	return &lineCommand{Each: e}
}

// lines yields the names that are not empty. A name may have spaces around it.
func (c *lineCommand) lines(in io.Reader) iter.Seq[line] {
	end := byte('\n')
	if c.Null {
		end = 0
	}
	return func(yield func(line) bool) {
		for l := range lines(in, end) {
			if runtime.GOOS == "windows" {
				l.text = bytes.TrimSuffix(l.text, []byte("\r"))
			}
			if (l.err != nil || len(l.text) > 0) && !yield(l) {
				return
			}
		}
	}
}

// fill sets the fields of s that depend on the line.
func (c *lineCommand) fill(s *jobs.Spec, line string) error {
	if strings.IndexByte(line, 0) >= 0 {
		return failure.Usage("holds a NUL byte, which no argument can hold").Hint("-0, if NUL separates the names")
	}
	var pairs []string
	for _, p := range placeholders {
		pairs = append(pairs, p.text, p.value(line))
	}
	values := strings.NewReplacer(pairs...)
	argv := slices.Clone(c.fixed)
	for _, word := range c.Words {
		argv = append(argv, values.Replace(word))
	}

	var err error
	if s.Args, err = taskjson.MarshalArgv(argv); err != nil {
		return err
	}
	s.Job, s.Path = jobs.CommandJob, c.path
	if c.Label {
		s.Label = humanize.Cut(humanize.Safe(line), taskspec.MaxText)
	}
	return nil
}
