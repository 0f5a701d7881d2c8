//go:build unix

package test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/runner/test/testkit"
)

// TestSystemdAcceptsUnits checks the systemd units with systemd-analyze. This
// program requires that the program in ExecStart exists. So the test checks
// copies of the units in which ExecStart is /bin/true.
func TestSystemdAcceptsUnits(t *testing.T) {
	verify := testkit.Program(t, "systemd-analyze")
	for _, unit := range []struct{ file, as, scope string }{
		{"runner.service", "runner.service", "--system"}, {"runner@.service", "runner@media.service", "--system"},
		{"user/runner.service", "runner.service", "--user"},
	} {
		text := readFile(t, filepath.Join("contrib/systemd", unit.file))
		text = strings.ReplaceAll(text, "/usr/bin/runner", "/bin/true")
		text = strings.ReplaceAll(text, "User=runner", "User=daemon")        // this user exists everywhere
		text = strings.ReplaceAll(text, "Documentation=man:runner(1)\n", "") // the manual page may not be installed
		copied := filepath.Join(t.TempDir(), unit.as)
		writeFile(t, copied, text)
		command := exec.CommandContext(t.Context(), verify, unit.scope, "verify", "--recursive-errors=no", copied)
		command.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		messages, err := command.CombinedOutput()
		if err != nil || len(bytes.TrimSpace(messages)) > 0 {
			t.Errorf("%s: got error %v and messages\n%s\nwant none", unit.file, err, messages)
		}
	}
}

// TestContainerfileHasVersionOfGo checks that the Containerfile uses the
// version of Go that go.mod names.
func TestContainerfileHasVersionOfGo(t *testing.T) {
	got := regexp.MustCompile(`golang:([0-9]+\.[0-9]+) `).FindStringSubmatch(readFile(t, "contrib/Containerfile"))
	want := regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`).FindStringSubmatch(readFile(t, "go.mod"))
	if got == nil || want == nil || got[1] != want[1] {
		t.Errorf("contrib/Containerfile: got Go %s, want %s", got, want)
	}
}

func TestLaunchdFileIsXML(t *testing.T) {
	for decoder := xml.NewDecoder(strings.NewReader(readFile(t, "contrib/launchd/runner.plist"))); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestManualPageIsWellFormed formats the manual page with groff, which must
// print no warning. All lines must be in the result.
func TestManualPageIsWellFormed(t *testing.T) {
	command := exec.CommandContext(t.Context(), testkit.Program(t, "groff"), "-man", "-Tutf8", "-ww", "-P-cbou", "contrib/man/runner.1")
	var messages bytes.Buffer
	command.Stderr = &messages
	shown, err := command.Output()
	testkit.NoError(t, err)
	testkit.Equal(t, "messages of groff", messages.String(), "")
	testkit.Contains(t, string(shown), "runner enqueue -- backup.sh --full",
		`pause prints a line for each queue: its name and "paused".`, `'{"to":"ann@example.com"}'`)
}
