package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/runner/internal/cli"
	"example.com/runner/test/testkit"
)

// TestUnitsCallWork checks that runner accepts the command lines in the systemd
// units, and that these command lines run "runner work".
func TestUnitsCallWork(t *testing.T) {
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/runner (.*)$`)
	for _, file := range []string{"runner.service", "runner@.service", "user/runner.service"} {
		text, err := os.ReadFile(filepath.Join("contrib/systemd", file))
		testkit.NoError(t, err)
		words := start.FindStringSubmatch(string(text))
		if words == nil {
			t.Fatalf("%s: got no ExecStart of runner, want one", file)
		}
		args := strings.Fields(strings.ReplaceAll(words[1], "%i", "media"))
		a := &cli.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" },
			Commands: entries}
		line, err := cli.Parse(a.AllCommands(), a.GlobalOptions(), args, a.Getenv)
		if err != nil || line.Command == nil || line.Command.Name != "work" {
			t.Errorf("%s: got %q, error %v; want the command work", file, args, err)
		}
	}
}

// manFile is the manual page.
const manFile = "contrib/man/runner.1"

// TestManualPageIsHelp checks that the manual page consists of the help texts.
// To write the page: UPDATE_DOCS=1 go test -run TestManualPage .
func TestManualPageIsHelp(t *testing.T) {
	a := &cli.App{Stdin: strings.NewReader(""), Stderr: io.Discard, Getenv: func(string) string { return "" }, Commands: entries}
	help := func(args ...string) string {
		var out bytes.Buffer
		a.Stdout = &out
		if status := a.Run(context.Background(), append(args, "--help")); status != 0 {
			t.Fatalf("%v: got exit status %d, want 0", args, status)
		}
		return out.String()
	}
	page := manualPage(a.AllCommands(), help)
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.MkdirAll(filepath.Dir(manFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(manFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(manFile); err != nil || string(text) != page {
		t.Errorf("got another text in %s than the help (error %v); to write it: UPDATE_DOCS=1 go test -run TestManualPage .", manFile, err)
	}
}

// globalOptions matches the lines in a help text that tell the reader where the
// global options are described.
var globalOptions = regexp.MustCompile(`\nglobal options .*\n  .*\n\n`)

// manualPage returns the manual page in roff format. It contains the unchanged
// help texts.
func manualPage(list []*cli.Command, help func(...string) string) string {
	var b strings.Builder
	b.WriteString(`.\" Made of the help texts by a test (TestManualPage): do not edit.
.TH RUNNER 1 "" "runner" "User Commands"
.SH NAME
runner \- a job runner in one file: one binary, one SQLite database
.SH SYNOPSIS
.B runner
.I COMMAND
[\fIOPTIONS\fR] [\fIARGS\fR]
.SH DESCRIPTION
Runs commands later, in the background, in order, again when they fail.
Tasks are rows of one SQLite file; workers
.RB ( "runner work" )
run them.
There is no server and nothing to configure.
Each command has a section of its own below, as
.B runner COMMAND \-\-help
prints it.
`)
	for _, c := range list {
		if c.Hidden {
			continue
		}
		for _, sub := range append([]*cli.Command{nil}, c.Subcommands...) {
			words := []string{c.Name}
			if sub != nil {
				words = append(words, sub.Name)
			}
			text := help(words...)
			text = globalOptions.ReplaceAllString(text, "\n") // the manual page describes the global options in a section of its own
			fmt.Fprintf(&b, ".SH \"RUNNER %s\"\n", strings.ToUpper(strings.Join(words, " ")))
			manualText(&b, text)
		}
	}
	b.WriteString(".SH \"GLOBAL OPTIONS\"\nBefore or after the command:\n.PP\n")
	manualText(&b, cli.OptionHelp(new(cli.App).GlobalOptions()))
	b.WriteString(`.SH FILES
.TP
.I /var/lib/runner/runner.db
the database of root and of the owner of that directory, if it exists
.TP
.I ~/.local/state/runner/runner.db
the database of everybody else
.TP
.I /etc/default/runner
settings of the service, as in RUNNER_CONCURRENCY=8
.SH SEE ALSO
.BR crontab (5),
.BR systemctl (1),
.BR sqlite3 (1)
`)
	return b.String()
}

// manualText writes text in such a way that roff prints the same lines. It
// escapes what has a meaning in roff: a backslash, a hyphen, a quote, and a dot
// or quote at the start of a line.
func manualText(b *strings.Builder, text string) {
	escape := strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", "\\(ga", "^", `\(ha`, "~", `\(ti`)
	b.WriteString(".nf\n")
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = escape.Replace(line)
		if strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		for _, r := range line {
			if r < utf8.RuneSelf {
				b.WriteRune(r)
			} else {
				fmt.Fprintf(b, `\[u%04X]`, r)
			}
		}
	}
	b.WriteString(".fi\n")
}
