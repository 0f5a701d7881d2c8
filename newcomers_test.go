package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/cli"
	"example.com/runner/test/testkit"
)

// answerTo runs a command line of runner and returns its exit status and the
// hint in its error message. If there is no hint, it returns the whole message.
// Valid command lines do nothing, because the context has ended before they
// open the database.
func answerTo(t *testing.T, shell, text string) (status int, hint string) {
	t.Helper()
	words, err := exec.CommandContext(t.Context(), shell, "-c", `printf '%s\0' runner `+text).Output()
	if err != nil {
		t.Fatalf("the shell does not split %q: %v", text, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	file := t.TempDir() + "/runner.db"
	a := &cli.App{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now, Commands: entries,
		Getenv: func(name string) string { return map[string]string{"RUNNER_DB": file, "PATH": os.Getenv("PATH")}[name] }}
	status = a.Run(ctx, strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")[1:])
	message, hint, found := strings.Cut(stderr.String(), "\n  try: ")
	if !found {
		hint = message
	}
	return status, strings.TrimSpace(hint)
}

// TestNewcomersFindCommand tries command lines that new users may type. At
// least 90 % of them must work or get the right hint. No hint may be wrong. If
// no command of runner does what the user wants, the hint must be a page of the
// help.
func TestNewcomersFindCommand(t *testing.T) {
	shell := testkit.Program(t, "sh")
	list, err := os.ReadFile("testdata/newcomers.txt")
	if err != nil {
		t.Fatal(err)
	}
	works, hinted, deadEnds, misled := 0, 0, 0, 0
	for line := range strings.Lines(string(list)) {
		text, want, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  =>  ")
		if !found {
			continue
		}
		status, hint := answerTo(t, shell, text)
		switch help := strings.HasSuffix(hint, "--help"); {
		case want == "works" && status != 2:
			works++
		case want != "works" && status == 2 && strings.Contains(hint, want) && !help:
			hinted++
		case help:
			deadEnds++
			if !strings.HasSuffix(want, "--help") {
				t.Logf("runner %s: got status %d and the hint %q; want %q", text, status, hint, want)
			}
		default:
			misled++
			t.Errorf("runner %s: got status %d and the hint %q; want %q", text, status, hint, want)
		}
	}
	total := works + hinted + deadEnds + misled
	helped := 100 * float64(works+hinted) / float64(total)
	t.Logf("%d command lines: %d work, %d get the right hint (%.1f %%), %d dead ends, %d misled", total, works, hinted, helped, deadEnds,
		misled)
	if total < 100 || helped < 90 || misled > 0 {
		t.Errorf("got %d command lines, %.1f %% helped, %d misled; want at least 100, 90 %% and 0", total, helped, misled)
	}
}

// TestSynonymsNameWhatRunnerHas checks the hints for commands and options of
// other tools. Each hint must be a command line or an option of runner. A name
// that gets a hint must not itself be a command or option of runner.
func TestSynonymsNameWhatRunnerHas(t *testing.T) {
	a := &cli.App{Commands: entries, Now: time.Now, Getenv: func(string) string { return "" }}
	parse := func(text string) error {
		_, err := cli.Parse(a.AllCommands(), a.GlobalOptions(), strings.Fields(text), a.Getenv)
		return err
	}
	example := strings.NewReplacer(" TIME", " 15:00", " DUR", " 10m", " N", " 4", " EXPR", " @daily")
	checkHint := func(name, hint string) {
		for text := range strings.SplitSeq(hint, "      ") {
			if text, ours := strings.CutPrefix(text, "runner "); ours {
				if err := parse(example.Replace(text)); err != nil {
					t.Errorf("%s: the hint %q: got the error %v; want none", name, text, err)
				}
			}
		}
	}
	screens := ""
	for name, c := range visible() {
		screens += helpOf(t, name, c)
	}
	for _, s := range cli.CommandSynonyms {
		for name := range strings.SplitSeq(s.Names, ", ") {
			if parse(name) == nil {
				t.Errorf("the synonym %q is a command of runner; want another name", name)
			}
			checkHint(name, s.Hint)
		}
	}
	for _, s := range cli.OptionSynonyms {
		checkHint(s.Names, s.Hint)
		option, _, _ := strings.Cut(s.Hint, " ")
		if option != "runner" && !strings.Contains(screens, " "+option) {
			t.Errorf("the synonyms %q: got the hint %q; want an option of a command", s.Names, s.Hint)
		}
	}
}
