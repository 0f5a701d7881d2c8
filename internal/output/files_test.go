package output

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/logging"
	"example.com/runner/internal/term"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func openFiles(t *testing.T, most int64) (f *Files, r *runner.Runner, log *bytes.Buffer) {
	t.Helper()
	r = runnerkit.Open(t, runner.Options{})
	log = &bytes.Buffer{}
	f, err := OpenFiles(r, filepath.Join(t.TempDir(), "out"), most, logging.New(term.Stream{Writer: log}, logging.Journal, slog.LevelInfo))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, r, log
}

// attempt runs an attempt that prints the given pieces.
func (f *Files) attempt(t *testing.T, task jobs.Task, pieces ...string) {
	t.Helper()
	h := f.Record(jobs.Handler{Run: func(_ context.Context, task jobs.Task) (json.RawMessage, error) {
		for i, piece := range pieces {
			f.Copy(task, []string{"stdout", "stderr"}[i%2], []byte(piece))
		}
		f.Copy(task, "stdout", nil)
		return nil, nil
	}})
	if _, err := h.Run(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "number of open files", len(f.open), 0)
}

func (f *Files) wantFiles(t *testing.T, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(f.path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, entry := range entries {
		if entry.Name() == ownerFile {
			continue
		}
		text, err := os.ReadFile(filepath.Join(f.path, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[entry.Name()] = string(text)
		if info, err := entry.Info(); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%s: got mode %v and error %v, want 0600", entry.Name(), info.Mode(), err)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got files %q, want %q", got, want)
	}
}

func TestEachAttemptHasAFile(t *testing.T) {
	f, _, _ := openFiles(t, 0)
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o700 && runtime.GOOS != "windows" {
		t.Errorf("got mode %v and error %v, want 0700", info.Mode(), err)
	}
	f.attempt(t, jobs.Task{ID: 7, Attempt: 1}, "a\n", "b\n", "c")
	f.attempt(t, jobs.Task{ID: 7, Attempt: 2, GenerationID: 3}, "again\x00")
	f.attempt(t, jobs.Task{ID: 7, Attempt: 2, GenerationID: 5}, " and after a loss")
	f.attempt(t, jobs.Task{ID: 8, Attempt: 1})
	f.wantFiles(t, map[string]string{"7-1.log": "a\nb\nc", "7-2.log": "again\x00 and after a loss"})
}

func TestALongFileIsRenamed(t *testing.T) {
	f, _, _ := openFiles(t, 10)
	f.attempt(t, jobs.Task{ID: 7, Attempt: 1}, "1234567890", "abcdefgh", "ij", "k", strings.Repeat("x", 12), "y")
	f.wantFiles(t, map[string]string{"7-1.log": "y", "7-1.log.1": strings.Repeat("x", 12)})
}

func TestAnErrorOfAFileIsReportedOnce(t *testing.T) {
	f, _, log := openFiles(t, 0)
	if err := os.Mkdir(filepath.Join(f.path, "7-1.log"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.attempt(t, jobs.Task{ID: 7, Attempt: 1}, "a", "b")
	testkit.Equal(t, "errors in the log", strings.Count(log.String(), "<3>cannot write an output file"), 1)
	f.attempt(t, jobs.Task{ID: 8, Attempt: 1}, "a")
	testkit.Equal(t, "errors in the log after another task", strings.Count(log.String(), "<3>"), 1)
}

func TestFilesOfDeletedTasksAreDeleted(t *testing.T) {
	f, r, _ := openFiles(t, 3)
	added := runnerkit.Enqueue(t, r, jobs.Shell("true").With())
	for _, id := range []int64{added.ID, 900, 901} {
		f.attempt(t, jobs.Task{ID: id, Attempt: 1}, "abc", "def")
	}
	for _, name := range []string{"notes.txt", "902.log", "0-1.log", "901-1.log.2"} {
		if err := os.WriteFile(filepath.Join(f.path, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n, err := f.sweep(t.Context(), r)
	if n != 4 || err != nil {
		t.Errorf("got %d deleted files and error %v, want 4", n, err)
	}
	f.wantFiles(t, map[string]string{fmt.Sprintf("%d-1.log", added.ID): "def", fmt.Sprintf("%d-1.log.1", added.ID): "abc",
		"notes.txt": "notes.txt", "902.log": "902.log", "0-1.log": "0-1.log", "901-1.log.2": "901-1.log.2"})
}

func TestADirectoryBelongsToOneDatabase(t *testing.T) {
	f, r, _ := openFiles(t, 0)
	again, err := OpenFiles(r, f.path, 0, f.log)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	other := runnerkit.Open(t, runner.Options{})
	if _, err := OpenFiles(other, f.path, 0, f.log); err == nil || !strings.Contains(err.Error(), admin.Directory(r)) {
		t.Errorf("got error %v, want one with %s", err, admin.Directory(r))
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(f.path, 0o770); err != nil { //nolint:gosec // the test needs a directory that others can write
		t.Fatal(err)
	}
	if _, err := OpenFiles(r, f.path, 0, f.log); err == nil || !strings.Contains(err.Error(), "other users can write it") {
		t.Errorf("got error %v, want one about other users", err)
	}
}
