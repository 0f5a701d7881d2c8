package runner_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func TestReadOnlyReadsAndChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	read := func() (*runner.Runner, error) {
		return runner.Open(t.Context(), path, runner.Options{ReadOnly: true})
	}
	if _, err := read(); !errors.Is(err, jobs.ErrNoDatabase) {
		t.Error("no file:", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("created")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); !errors.Is(err, jobs.ErrSchema) {
		t.Error("empty file:", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Error("an empty file was filled", err)
	}
	r, err := runner.Open(t.Context(), path, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	task := enqueue(t, r, jobs.Command{Argv: []string{"true"}}.With())
	reader, err := read()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if got := get(t, reader, task.ID); got.State != jobs.Pending {
		t.Errorf("got %+v, want State = Pending", got)
	}
	if _, err := reader.Enqueue(t.Context(), jobs.Command{Argv: []string{"true"}}.With()); err == nil {
		t.Error("wrote")
	}
	if n, err := reader.Count(t.Context(), jobs.Filter{}); n != 1 || err != nil {
		t.Errorf("got %v, %v; want n = 1, no error", n, err)
	}
}
