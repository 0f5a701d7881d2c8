package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/test/testkit"
)

// visible returns the commands and subcommands that the help lists, by their
// full names.
func visible() map[string]*cli.Command {
	list := map[string]*cli.Command{}
	for _, c := range (&cli.App{Commands: entries}).AllCommands() {
		if c.Hidden {
			continue
		}
		list[c.Name] = c
		for _, sub := range c.Subcommands {
			list[c.Name+" "+sub.Name] = sub
		}
	}
	return list
}

// helpOf returns the help screen of a command.
func helpOf(t *testing.T, name string, c *cli.Command) string {
	t.Helper()
	p, out, _ := termtest.Printer(0)
	if err := cli.CommandHelp(p, cli.Line{Command: c, Path: strings.Fields(name)}, new(cli.App).GlobalOptions()); err != nil {
		t.Fatal(name, err)
	}
	p.Flush()
	return out.String()
}

// TestHelpHasItsPartsInOrder checks that each help screen has the same parts in
// the same order, and at most 80 columns.
func TestHelpHasItsPartsInOrder(t *testing.T) {
	parts := regexp.MustCompile(`(?s)^runner [a-z ]+ - [^\n]+\n\nEXAMPLES\n  .*\n\nusage: runner .*\nglobal options .*\nEXIT STATUS`)
	for name, c := range visible() {
		help := helpOf(t, name, c)
		if !parts.MatchString(help) {
			t.Errorf("%s --help: got %s\nwant purpose, examples, usage, options, global options, exit status", name, help)
		}
		if last := help[strings.LastIndex(help, "\n\n")+2:]; !strings.HasPrefix(last, "EXIT STATUS") {
			t.Errorf("%s --help: got the last paragraph %q; want EXIT STATUS", name, last)
		}
		for line := range strings.Lines(help) {
			if width := ui.Cells(strings.TrimSuffix(line, "\n")); width > 80 {
				t.Errorf("%s --help: got %d columns in %q; want at most 80", name, width, line)
			}
		}
	}
}

// TestExamplesOfHelpParse checks that every command has at least two examples
// that runner accepts. A shell splits the examples into words.
func TestExamplesOfHelpParse(t *testing.T) {
	shell := testkit.Program(t, "sh")
	a := &cli.App{Commands: entries, Now: time.Now, Getenv: func(string) string { return "" }}
	for name, c := range visible() {
		n := 0
		help := strings.ReplaceAll(helpOf(t, name, c), "\\\n", "")
		for _, part := range strings.Split(help, "\n\n") {
			heading, examples, _ := strings.Cut(part, "\n")
			if !strings.HasSuffix(heading, "EXAMPLES") {
				continue
			}
			for _, text := range runnerCommands(examples) {
				words, err := exec.CommandContext(t.Context(), shell, "-c", `printf '%s\0' `+text).Output()
				if err != nil {
					t.Fatalf("%s: the shell does not split %q: %v", name, text, err)
				}
				args := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
				line, err := cli.Parse(a.AllCommands(), a.GlobalOptions(), args, a.Getenv)
				if err != nil || line.Command == nil {
					t.Errorf("%s: the example %q: got %v; want no error", name, text, err)
				}
				n++
			}
		}
		if n < 2 {
			t.Errorf("%s --help: got %d examples; want 2 or more", name, n)
		}
	}
}

var startOfCall = regexp.MustCompile(`(?m)(?:^ *|\(|\| |sudo )runner `)

// runnerCommands finds the calls of runner in lines of shell, and returns the
// arguments of each call. A call ends at an unquoted operator, comment or
// newline.
func runnerCommands(text string) (list []string) {
	for _, at := range startOfCall.FindAllStringIndex(text, -1) {
		call, quote := text[at[1]:], rune(0)
		end := strings.IndexFunc(call, func(r rune) bool {
			switch {
			case quote != 0 && r == quote:
				quote = 0
			case quote == 0 && (r == '\'' || r == '"'):
				quote = r
			}
			return quote == 0 && strings.ContainsRune("|;&()<>#\n", r)
		})
		if end >= 0 {
			call = call[:end]
		}
		list = append(list, call)
	}
	return list
}
