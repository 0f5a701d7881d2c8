package main

import (
	"bytes"
	"context"
	"image/png"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// TestMain runs the program instead of the tests if PHOTOS_TEST is set. The
// tests start and kill such processes.
func TestMain(m *testing.M) {
	if os.Getenv("PHOTOS_TEST") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Env = append(os.Environ(), "PHOTOS_TEST=1", "GORACE=atexit_sleep_ms=0")
	c.Stderr = os.Stderr
	return c
}

// TestRepeatedKillsLeaveOneThumbnailPerPhoto kills the program at random
// moments and starts it again. The last start ends by itself.
func TestRepeatedKillsLeaveOneThumbnailPerPhoto(t *testing.T) {
	photos, kills := 60, 10
	dir := t.TempDir()
	folder, path := filepath.Join(dir, "pictures"), filepath.Join(dir, "photos.db")
	if err := generate(folder, photos); err != nil {
		t.Fatal(err)
	}
	look, err := open(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer look.close()
	imported := func() (n int) {
		if err := look.db.QueryRowContext(t.Context(), `SELECT count(*) FROM photos`).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	for range kills {
		p := program(t, "-db", path, "import", folder)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- p.Wait() }()
		// Let the program import some photos, and kill it a random time later.
		want := min(imported()+1+rand.IntN(2*photos/kills-2), photos)
		err := admin.Changes(t.Context(), look.runner, func() (bool, error) { return imported() >= want, nil })
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(time.Duration(rand.IntN(10)) * time.Millisecond):
			_ = p.Process.Kill()
			<-ended
		}
	}
	if out, err := program(t, "-db", path, "import", folder).Output(); err != nil {
		t.Fatalf("the last import: got error %v, want none: %s", err, out)
	}
	if err := generate(filepath.Join(folder, "more"), 3); err != nil {
		t.Fatal(err)
	}
	if out, err := program(t, "-db", path, "import", folder).Output(); err != nil || !strings.Contains(string(out), "3/3 photo-") {
		t.Errorf("an import of 3 photos more: got error %v, want none and a count to 3/3: %q", err, out)
	}
	photos += 3

	// Each photo must have exactly one thumbnail, one row and one completed
	// task. Each thumbnail must be complete.
	thumbs := countThumbnails(t, look.thumbs)
	completed, _, err := look.runner.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Completed}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := look.runner.List(t.Context(), jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	losses := 0
	for _, task := range all {
		losses += task.Losses
	}
	if thumbs != photos || imported() != photos || completed != photos || len(all) != photos {
		t.Errorf("got %d thumbnails, %d rows, %d tasks and %d completed tasks, want %d of each",
			thumbs, imported(), len(all), completed, photos)
	}
	var list strings.Builder
	if err := look.list(t.Context(), &list); err != nil || strings.Count(list.String(), "\n") != photos {
		t.Errorf("list: got error %v and this text, want %d lines:\n%s", err, photos, list.String())
	}
	t.Logf("%d photos, %d kills, %d attempts lost", photos, kills, losses)
	checkCommandLine(t, path, photos)
}

// countThumbnails returns the number of thumbnails in a folder. Each must be a
// complete picture.
func countThumbnails(t *testing.T, folder string) (n int) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "part-") { // temporary file of a killed attempt
			continue
		}
		n++
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if picture, err := png.Decode(bytes.NewReader(text)); err != nil || picture.Bounds().Dx() != thumbSize {
			t.Errorf("%s: got error %v or a wrong width, want a thumbnail of %d pixels", f.Name(), err, thumbSize)
		}
	}
	return n
}

// checkCommandLine checks with the command runner that the file has the right
// tasks.
func checkCommandLine(t *testing.T, path string, photos int) {
	t.Helper()
	command := filepath.Join(t.TempDir(), "runner")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("build runner: got error %v, want none: %s", err, out)
	}
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), command, append([]string{"--db", path}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("runner %v: got error %v, want none: %s", args, err, out)
		}
		return string(out)
	}
	if out := run("list", "-j", "photo.import", "-n", "0"); strings.Count(out, "completed") != photos {
		t.Errorf("runner list: got this output, want %d completed tasks:\n%s", photos, out)
	}
	if out := run("show", "1", "--json"); !strings.Contains(out, `"name":"thumbnail"`) {
		t.Errorf("runner show: got this output, want a step with the name thumbnail:\n%s", out)
	}
	run("logs", "1")
}

func TestFileThatIsNoPhotoIsCancelled(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "pictures")
	if err := generate(folder, 1); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "text.png"), []byte("no image"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := open(t.Context(), filepath.Join(dir, "photos.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for round, want := range []int{2, 1} { // the second import skips the imported image and enqueues the failed one again
		if ids, err := l.enqueueFolder(t.Context(), folder); err != nil || len(ids) != want {
			t.Errorf("round %d: got %d new tasks and error %v, want %d tasks", round, len(ids), err, want)
		}
		if ids, err := l.enqueueFolder(context.WithoutCancel(t.Context()), folder); err != nil || len(ids) != 0 {
			t.Errorf("round %d, second call: got %d new tasks and error %v, want no task", round, len(ids), err)
		}
		if err := l.runner.Work(t.Context(), runner.WorkOptions{UntilEmpty: true}); err != nil {
			t.Fatal(err)
		}
	}
	for state, want := range map[jobs.State]int{jobs.Completed: 1, jobs.Cancelled: 2} {
		if n, _, err := l.runner.Count(t.Context(), jobs.Filter{States: []jobs.State{state}}); err != nil || n != want {
			t.Errorf("got %d %s tasks and error %v, want %d", n, state, err, want)
		}
	}
}
