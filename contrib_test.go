package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/runner/internal/cli"
)

// needs returns the path of a program. It skips the test if the program is missing. .ci/run installs all programs and does not accept
// skipped tests.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("%s is not installed", program)
	}
	return path
}

// systemd accepts the units, and runner accepts the options of work in them. systemd-analyze requires that the program of ExecStart
// exists. So the copies name an existing program, and runner itself parses the original words.
func TestUnitsAreValid(t *testing.T) {
	verify := needs(t, "systemd-analyze")
	start := regexp.MustCompile(`(?m)^ExecStart=/usr/bin/runner (.*)$`)
	for _, unit := range []struct{ file, as, scope string }{
		{"runner.service", "runner.service", "--system"}, {"runner@.service", "runner@media.service", "--system"},
		{"user/runner.service", "runner.service", "--user"},
	} {
		text, err := os.ReadFile(filepath.Join("contrib/systemd", unit.file))
		if err != nil {
			t.Fatal(err)
		}
		words := start.FindStringSubmatch(string(text))
		if words == nil {
			t.Fatalf("%s starts no runner", unit.file)
		}
		args := strings.Fields(strings.ReplaceAll(words[1], "%i", "media"))
		a := &cli.App{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" },
			Commands: commands}
		if line, err := cli.Parse(a.Commands(a), cli.GlobalOptions(), args, a.Getenv); err != nil || line.Command == nil ||
			line.Command.Name != "work" {
			t.Errorf("%s starts %q: %v", unit.file, args, err)
		}
		copied := filepath.Join(t.TempDir(), unit.as)
		text = bytes.ReplaceAll(text, []byte("/usr/bin/runner"), []byte("/bin/true"))
		text = bytes.ReplaceAll(text, []byte("User=runner"), []byte("User=daemon")) // a user that exists everywhere
		text = bytes.ReplaceAll(text, []byte("Documentation=man:runner(1)\n"), nil) // the manual page may not be installed
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), verify, unit.scope, "verify", "--recursive-errors=no", copied)
		command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		if said, err := command.CombinedOutput(); err != nil || len(bytes.TrimSpace(said)) > 0 {
			t.Errorf("got %s: %v\n%s; want no error, len(TrimSpace(said)) <= 0", unit.file, err, said)
		}
	}
}

func TestLaunchdFileIsXML(t *testing.T) {
	text, err := os.ReadFile("contrib/launchd/runner.plist")
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

const manFile = "contrib/man/runner.1"

// The manual page consists of the help texts. UPDATE_DOCS=1 go test -run TestManualPage . writes it.
func TestManualPageIsTheHelp(t *testing.T) {
	a := &cli.App{Stdin: strings.NewReader(""), Stderr: io.Discard, Getenv: func(string) string { return "" }, Commands: commands}
	help := func(args ...string) string {
		var out bytes.Buffer
		a.Stdout = &out
		if status := a.Run(context.Background(), append(args, "--help")); status != 0 {
			t.Fatalf("%v: exit %d", args, status)
		}
		return out.String()
	}
	page := manualPage(a.Commands(a), help)
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.MkdirAll(filepath.Dir(manFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(manFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(manFile); err != nil || string(text) != page {
		t.Errorf("%s is not what the help says (%v): UPDATE_DOCS=1 go test -run TestManualPage .", manFile, err)
	}
}

// groff formats the manual page without a warning and without losing a line.
func TestManualPageIsWellFormed(t *testing.T) {
	command := exec.CommandContext(t.Context(), needs(t, "groff"), "-man", "-Tutf8", "-ww", "-P-cbou", manFile)
	var said bytes.Buffer
	command.Stderr = &said
	shown, err := command.Output()
	if err != nil || said.Len() > 0 {
		t.Fatalf("got %v\n%s; want no error, said.Len() <= 0", err, said.String())
	}
	for _, want := range []string{"runner enqueue -- backup.sh --full", `pause prints a line for each queue: its name and "paused".`,
		`'{"to":"ann@example.com"}'`} {
		if !strings.Contains(string(shown), want) {
			t.Errorf("the page does not show %q", want)
		}
	}
}

var globalOptions = regexp.MustCompile(`\nglobal options .*\n  .*\n\n`)

// manualPage returns the manual page: the unchanged help texts between .nf and .fi.
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
Runs commands later, in the background, in order, again when they fail. Tasks are rows of one SQLite file; workers
.RB ( "runner work" )
run them. There is no server and nothing to configure. Each command has a section of its own below, as
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
			text = globalOptions.ReplaceAllString(text, "\n") // the page has a section for them
			fmt.Fprintf(&b, ".SH \"RUNNER %s\"\n", strings.ToUpper(strings.Join(words, " ")))
			manualText(&b, text)
		}
	}
	b.WriteString(".SH \"GLOBAL OPTIONS\"\nBefore or after the command:\n")
	manualText(&b, cli.OptionHelp(cli.GlobalOptions()))
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

// manualText writes lines unchanged. It escapes characters that have a meaning for roff: a backslash, a leading dot or quote, a hyphen
// and a quote.
func manualText(b *strings.Builder, text string) {
	escape := strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", "\\(ga", "^", `\(ha`, "~", `\(ti`)
	b.WriteString(".PP\n.nf\n")
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
