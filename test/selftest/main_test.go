package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"example.com/runner/runner/commands"
	"example.com/runner/test/selftest/harness"
	"example.com/runner/test/testkit"
)

// TestMain makes the test binary act as the processes of a selftest, too.
func TestMain(m *testing.M) {
	if commands.Guardian() {
		return
	}
	if len(os.Args) > 1 && os.Args[1] == harness.RoleCommand {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestInvalidUsesAreRejected(t *testing.T) {
	for _, args := range [][]string{{"now"}, {"-for", "100ms"}, {"-seed", "zero"}} {
		testkit.Equal(t, strings.Join(args, " "), run(t.Context(), args, io.Discard, io.Discard), 2)
	}
	testkit.Equal(t, "status", run(t.Context(), []string{"-runner", "runner", "-dir", "nosuch"}, io.Discard, io.Discard), 1)
}

// TestSelftestOfSomeSeconds kills workers for 3 s. No task is lost, and no
// file is left.
func TestSelftestOfSomeSeconds(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	testkit.NeedFull(t)
	program, dir := filepath.Join(t.TempDir(), "runner"), t.TempDir()
	if text, err := exec.Command("go", "build", "-o", program, "example.com/runner").CombinedOutput(); err != nil {
		t.Fatalf("build runner: got error %v, want none: %s", err, text)
	}
	t.Setenv("RUNNER_DB", filepath.Join(t.TempDir(), "runner.db"))
	var out, notes strings.Builder
	status := run(t.Context(), []string{"-runner", program, "-for", "3s", "-seed", "7", "-dir", dir}, &out, &notes)
	if status != 0 {
		t.Fatalf("got status %d, want 0:\n%s%s", status, notes.String(), out.String())
	}
	for _, want := range []string{
		"^seed +7$",
		"^kills and stops +[1-9]",
		"^acknowledged enqueues +[1-9]",
		"^acknowledged enqueues lost +0$",
		"^kills of a committing process +5$",
		"^freezes of all processes +1$",
		"^leftovers 1s after the end +0$",
		"^attempts failed by runner's own kill +0$",
		"^no violations$",
	} {
		if !regexp.MustCompile("(?m)" + want).MatchString(out.String()) {
			t.Errorf("got no line %q, want one:\n%s", want, out.String())
		}
	}
	left, err := os.ReadDir(dir)
	testkit.NoError(t, err)
	testkit.Equal(t, "files left", len(left), 0)
	testkit.Equal(t, "the user's database exists", exists(os.Getenv("RUNNER_DB")), false)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
