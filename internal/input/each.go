package input

import (
	"bytes"
	"cmp"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Each is the command that enqueue --each runs for each line.
type Each struct {
	fixed []string // words without placeholders: the shell and its script
	words []string // words with placeholders
	path  string   // path of the shell; empty without --shell
	end   byte     // of a line: a newline or NUL
}

// NewEach returns the command with these words or, if there are none, with the
// script of --shell, which gets the line as a parameter. With null, a NUL byte
// ends a line.
func NewEach(words []string, script string, null bool) (*Each, error) {
	e := &Each{words: words, end: '\n'}
	if null {
		e.end = 0
	}
	if script == "" {
		if !slices.ContainsFunc(words, hasPlaceholder) {
			e.words = append(slices.Clone(words), "{}")
		}
		return e, nil
	}

	switch {
	case runtime.GOOS == "windows":
		return nil, ui.Exclusive("--each", "--shell").Because("the shell of Windows cannot take the line as a parameter")
	case hasPlaceholder(script) && !slices.ContainsFunc([]string{"$1", "$@", "$*", "${1", "${@", "${*"},
		func(use string) bool { return strings.Contains(script, use) }):
		return nil, ui.Usage("--shell has a placeholder; with --each the script gets the line as its parameter").
			Hint(`"$1" in place of {}`)
	}

	shell := command.Shell(script)
	e.fixed, e.words, e.path = append(shell.Argv, "sh"), []string{"{}"}, shell.Path
	return e, nil
}

// placeholders are those of GNU parallel.
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

var separators = "/" + string(os.PathSeparator)

// baseName returns the part of a path after its last separator.
func baseName(path string) string { return path[strings.LastIndexAny(path, separators)+1:] }

// dirName returns the part of a path before its last name, as dirname does: "."
// if the path has no other part.
func dirName(path string) string {
	if strings.Trim(path, separators) == "" && path != "" {
		return path[:1]
	}
	path = strings.TrimRight(path, separators)
	dir := path[:len(path)-len(baseName(path))]
	if dir == "" {
		return "."
	}
	return cmp.Or(strings.TrimRight(dir, separators), dir[:1]) // the directory of "/a" is "/"
}

// withoutExtension removes the last dot of the base name and the text after it.
func withoutExtension(path string) string {
	if base := baseName(path); strings.Contains(base, ".") {
		return path[:strings.LastIndexByte(path, '.')]
	}
	return path
}

// hasPlaceholder reports whether a word contains a placeholder.
func hasPlaceholder(word string) bool {
	return slices.ContainsFunc(placeholders, func(p placeholder) bool { return strings.Contains(word, p.text) })
}

// lines yields the names that are not empty. A name may have spaces around it.
func (e *Each) lines(in io.Reader) iter.Seq[line] {
	return lines(in, e.end, func(text []byte) []byte {
		if runtime.GOOS == "windows" {
			return bytes.TrimSuffix(text, []byte("\r"))
		}
		return text
	})
}

// fill sets the fields of s that depend on the line. The label, too, may have
// placeholders.
func (e *Each) fill(s *jobs.Spec, line string) error {
	if strings.IndexByte(line, 0) >= 0 {
		return ui.Usage("holds a NUL byte, which no argument can hold").Hint("-0, if NUL separates the names")
	}

	var pairs []string
	for _, p := range placeholders {
		pairs = append(pairs, p.text, p.value(line))
	}

	values := strings.NewReplacer(pairs...)
	argv := slices.Clone(e.fixed)
	for _, word := range e.words {
		argv = append(argv, values.Replace(word))
	}

	command := jobs.Command(command.Command{Argv: argv})
	s.Job, s.Args, s.Path = command.Job, command.Args, e.path
	s.Label = humanize.Cut(humanize.Safe(values.Replace(s.Label)), taskspec.MaxText)
	return command.Err
}
