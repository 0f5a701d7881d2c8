package runner_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestReadOnlyReadsAndChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	read := func() (*runner.Runner, error) {
		return runner.Open(t.Context(), path, runner.Options{ReadOnly: true})
	}
	_, err := read()
	testkit.ErrorIs(t, err, jobs.ErrNoDatabase)
	if _, err := os.Stat(path); err == nil {
		t.Error("got a new file from a read-only open, want none")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = read()
	testkit.ErrorIs(t, err, jobs.ErrSchema)
	info, err := os.Stat(path)
	testkit.NoError(t, err)
	testkit.Equal(t, "size of the empty file", info.Size(), 0)
	r, err := runner.Open(t.Context(), path, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}}))
	reader, err := read()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	testkit.Equal(t, "state", runnerkit.Get(t, reader, task.ID).State, jobs.Pending)
	_, err = reader.Enqueue(t.Context(), jobs.Command(command.Command{Argv: []string{"true"}}))
	refused, ok := errors.AsType[*jobs.Error](err)
	if !ok {
		t.Fatalf("Enqueue on a read-only Runner: got error %v, want a *jobs.Error", err)
	}
	testkit.ErrorIs(t, refused, jobs.ErrPermission)
	testkit.Equal(t, "reason", strings.Join(refused.Why, "; "), "the database was opened with Options.ReadOnly")
	testkit.Equal(t, "hint", refused.Hint, "open it without Options.ReadOnly")
	n, _, err := reader.Count(t.Context(), jobs.Filter{})
	testkit.Equal(t, "number of tasks", n, 1)
	testkit.NoError(t, err)
}
