package output

import (
	"context"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestLongWaitShowsItsProgress waits for four tasks, which end one after the
// other, one minute apart.
func TestLongWaitShowsItsProgress(t *testing.T) {
	for _, test := range []struct {
		what    string
		columns int
		json    bool
		want    string
	}{
		{"no terminal", 0, false, "runner: task 1 cancelled: by ann\nrunner: task 2 cancelled: by ann\n" +
			"runner: task 3 cancelled: by ann\nrunner: task 4 cancelled: by ann\n"},
		{"40 columns", 40, false, "runner: task 1 cancelled: by ann\n\r\x1b[K  waiting  25%  1/4  1 failed" +
			"\r\x1b[Krunner: task 2 cancelled: by ann\n\r\x1b[K  waiting  50%  2/4  2 failed  ETA 2m" +
			"\r\x1b[Krunner: task 3 cancelled: by ann\n\r\x1b[K  waiting  75%  3/4  3 failed  ETA 1m" +
			"\r\x1b[Krunner: task 4 cancelled: by ann\n"},
		{"JSON", 40, true, ""},
	} {
		r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
		var ids []int64
		for i := range 4 {
			task, err := r.Enqueue(t.Context(), noop.With(i))
			testkit.NoError(t, err)
			ids = append(ids, task.ID)
		}
		cancel := func(id int64) {
			_, err := r.Cancel(t.Context(), []int64{id}, runner.CancelOptions{})
			testkit.NoError(t, err)
		}
		p, _, stderr := termtest.Printer(test.columns)
		now := time.Now()
		p.Now, p.JSON = func() time.Time { return now }, test.json
		cancel(ids[0])
		end, err := Tasks{IDs: ids}.All(t.Context(), r, p, func(task jobs.Task) error {
			if now = now.Add(time.Minute); task.ID < ids[3] {
				cancel(task.ID + 1)
			}
			return nil
		})
		testkit.NoError(t, err)
		testkit.Equal(t, "exit status", ui.ExitCode(end), 1)
		testkit.Equal(t, test.what, regexp.MustCompile(`by \w+`).ReplaceAllString(stderr.String(), "by ann"), test.want)
	}
}

// TestWaitThatEndsEarlyRemovesBar checks that the message at the end of an
// interrupted wait does not follow the progress bar on the same line.
func TestWaitThatEndsEarlyRemovesBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runnerkit.OpenAlone(t, runner.Options{Sync: runner.SyncNormal})
		var ids []int64
		for i := range 2 {
			task, err := r.Enqueue(t.Context(), noop.With(i))
			testkit.NoError(t, err)
			ids = append(ids, task.ID)
		}
		ctx, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, TimedOut{50 * time.Millisecond})
		defer stop()
		p, _, stderr := termtest.Printer(40)
		now := time.Now()
		p.Now = func() time.Time { now = now.Add(time.Minute); return now }
		_, err := Tasks{IDs: ids}.All(ctx, r, p, func(jobs.Task) error { return nil })
		testkit.Equal(t, "exit status", ui.ExitCode(err), StatusTimedOut)
		testkit.Equal(t, "stderr", stderr.String(), "\r\x1b[K  waiting  0%  0/2"+
			"\r\x1b[Kgave up waiting after 50ms; 2 tasks go on\n")
	})
}
