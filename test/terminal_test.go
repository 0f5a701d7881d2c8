//go:build unix

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/runner/test/picture"
)

const terminalFile = "docs/pictures/terminal.svg"

// terminalSession lists the commands in the picture of a terminal at the top of
// README.md.
var terminalSession = []string{
	"runner run -- wc -w LICENSE",
	"runner enqueue --max-attempts 5 --backoff-delay 1m --shell 'echo disk full; exit 75'",
	"runner enqueue --timeout 100ms -- sleep 60",
	"runner work --until-empty -c 1",
	"runner list",
	"runner logs 2",
}

// TestPictureOfTerminalIsUpToDate runs the commands in the picture and compares
// their output with the picture. Times and durations may differ. To write the
// picture: UPDATE_DOCS=1 go test -run TestPicture ./test
func TestPictureOfTerminalIsUpToDate(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	goOutput(t, "build", "-o", filepath.Join(home, "bin", "runner"), ".")
	writeFile(t, filepath.Join(home, "LICENSE"), readFile(t, "LICENSE"))
	environ := append(shellEnviron(t, home), "HOME="+home, "RUNNER_DB="+filepath.Join(home, "runner.db"), "RUNNER_FORCE_TTY=100",
		"NO_COLOR=", "CLICOLOR_FORCE=1", "TZ=UTC")
	var lines []string
	for _, line := range terminalSession {
		shell := exec.CommandContext(t.Context(), "sh", "-c", line)
		shell.Dir, shell.Env = home, environ
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: got error %v, want none\n%s", line, err, out)
		}
		printed := strings.ReplaceAll(strings.TrimSuffix(string(out), "\n"), home, "/home/ann")
		lines = append(lines, "$ "+line)
		lines = append(lines, strings.Split(printed, "\n")...)
		lines = append(lines, "")
	}
	got := picture.Terminal("a session of runner in a terminal", lines[:len(lines)-1])
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(terminalFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := readFile(t, terminalFile); withoutTimes(got) != withoutTimes(want) {
		t.Errorf("%s: the commands print another text; got\n%s\nwant\n%s\nto write the picture: make docs", terminalFile, got, want)
	}
}

var times = regexp.MustCompile(`\d\d:\d\d:\d\d|\b\d+(\.\d+)?(ms|s|m|h)\b|viewBox="[^"]*"`)

// withoutTimes replaces all times and durations by the same letter, so that
// they are equal. It also shortens the space between words, because that
// depends on the widths of the times.
func withoutTimes(text string) string {
	return strings.Join(strings.Fields(times.ReplaceAllString(text, "T")), " ")
}
