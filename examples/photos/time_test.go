package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
)

// onFakeTime runs a test with a fake clock. The test gets a folder with one
// image.
func onFakeTime(t *testing.T, test func(t *testing.T, l *library, folder string)) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		l, err := newLibrary(t.Context(), r, runnertest.OpenDB(t, r))
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := generate(folder, 1); err != nil {
			t.Fatal(err)
		}
		test(t, l, folder)
	})
}

func (l *library) wantOne(t *testing.T) {
	t.Helper()
	var rows int
	if err := l.db.QueryRowContext(t.Context(), `SELECT count(*) FROM photos`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(l.thumbs)
	if err != nil || rows != 1 || len(files) != 1 {
		t.Errorf("got %d photos, thumbnails %v and error %v, want one of each", rows, files, err)
	}
}

// TestCrashBetweenTwoStepsRepeatsNoStep kills the program after the step
// "hash". The next attempt uses the stored hash and continues with the step
// "thumbnail".
func TestCrashBetweenTwoStepsRepeatsNoStep(t *testing.T) {
	onFakeTime(t, func(t *testing.T, l *library, folder string) {
		hashes, crashed := 0, false
		l.hash = func(path string) (string, error) { hashes++; return hashFile(path) }
		l.thumb = func(ctx context.Context, from, to string) (size, error) {
			if !crashed {
				crashed = true
				runnertest.Crash(ctx, l.runner)
			}
			return makeThumb(from, to)
		}
		if _, err := l.enqueueFolder(t.Context(), folder); err != nil {
			t.Fatal(err)
		}
		ran := runnertest.RunDue(t, l.runner)
		if len(ran) != 2 || ran[1].State != jobs.Completed || ran[1].Losses != 1 || hashes != 1 {
			t.Errorf("got tasks %+v and %d calls of the first step, want two attempts and one call", ran, hashes)
		}
		l.wantOne(t)
	})
}

// TestRetryAfterBackoffImportsPhoto makes the folder of thumbnails unavailable
// during the first attempt. The second attempt must import the photo, after the
// backoff.
func TestRetryAfterBackoffImportsPhoto(t *testing.T) {
	onFakeTime(t, func(t *testing.T, l *library, folder string) {
		if err := os.Remove(l.thumbs); err != nil {
			t.Fatal(err)
		}
		if ids, err := l.enqueueFolder(t.Context(), folder); len(ids) != 1 || err != nil {
			t.Fatalf("got %d new tasks and error %v, want 1", len(ids), err)
		}
		if ran := runnertest.RunDue(t, l.runner); len(ran) != 1 || ran[0].State != jobs.Retrying {
			t.Errorf("got tasks %+v, want one that is retrying", ran)
		}
		if err := os.Mkdir(l.thumbs, 0o700); err != nil {
			t.Fatal(err)
		}
		runnertest.Advance(t, 5*time.Second) // the backoff has not passed yet
		if ran := runnertest.RunDue(t, l.runner); len(ran) != 0 {
			t.Errorf("got tasks %+v before the backoff has passed, want none", ran)
		}
		runnertest.Advance(t, 10*time.Second)
		ran := runnertest.RunDue(t, l.runner)
		if len(ran) != 1 || ran[0].State != jobs.Completed {
			t.Fatalf("got tasks %+v, want one that completed", ran)
		}
		steps, err := admin.Steps(t.Context(), l.runner, ran[0].ID)
		if err != nil || len(steps) != 2 {
			t.Errorf("got steps %+v and error %v, want two", steps, err)
		}
		l.wantOne(t)
	})
}

// TestImportWithUnknownEndAddsOneTask repeats an import. The first import got
// an error although its commit succeeded, so the second one must add nothing.
func TestImportWithUnknownEndAddsOneTask(t *testing.T) {
	onFakeTime(t, func(t *testing.T, l *library, folder string) {
		runnertest.FailAfterCommit(t, l.runner)
		if _, err := l.enqueueFolder(t.Context(), folder); !errors.Is(err, runnertest.ErrInjected) {
			t.Errorf("got error %v, want %v", err, runnertest.ErrInjected)
		}
		ids, err := l.enqueueFolder(t.Context(), folder)
		if len(ids) != 0 || err != nil { // the task of the first call has the same unique key
			t.Errorf("second call: got %d new tasks and error %v, want none", len(ids), err)
		}
		if got := runnertest.Enqueued(t, l.runner, importPhoto); len(got) != 1 {
			t.Errorf("got tasks %v, want one", got)
		}
		runnertest.RunDue(t, l.runner)
		l.wantOne(t)
	})
}

// TestCrashAfterClaimLosesNoPhoto kills a worker after it has claimed a task
// and before it calls the task's function.
func TestCrashAfterClaimLosesNoPhoto(t *testing.T) {
	onFakeTime(t, func(t *testing.T, l *library, folder string) {
		if _, err := l.enqueueFolder(t.Context(), folder); err != nil {
			t.Fatal(err)
		}
		if got := runnertest.CrashAfterClaim(t, l.runner, 1); len(got) != 1 {
			t.Errorf("got claimed tasks %+v, want one", got)
		}
		if ran := runnertest.RunDue(t, l.runner); len(ran) != 1 || ran[0].State != jobs.Completed || ran[0].Losses != 1 {
			t.Errorf("got tasks %+v, want one that completed after a loss", ran)
		}
		l.wantOne(t)
	})
}
