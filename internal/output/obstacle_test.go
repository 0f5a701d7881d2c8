package output

import (
	"context"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/internal/ui/termtest"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// A wait says each reason once, and a reason that comes later at the next look.
func TestWaitSaysEachReasonOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runnerkit.OpenAlone(t, runner.Options{Sync: runner.SyncNormal})
		soon, err := r.Enqueue(t.Context(), noop.With(0, jobs.In(8*time.Second)))
		testkit.NoError(t, err)
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, TimedOut{time.Minute})
		defer stop()
		p, _, stderr := termtest.Printer(0)
		p.Now = time.Now
		o := NoteObstacles(ctx, r, p, []int64{soon.ID}, "", false)
		testkit.Equal(t, "at once", stderr.String(), "")
		go func() {
			time.Sleep(35 * time.Second)
			testkit.NoError(t, admin.PauseQueues(ctx, r, []string{admin.AllQueues}, admin.PauseOptions{}))
		}()
		err = Each(ctx, r, []int64{soon.ID}, func() { o.Look(ctx) }, func(jobs.Task) (bool, error) { return true, nil })
		testkit.Equal(t, "end", err.Error(), "gave up waiting after 1m")
		said := regexp.MustCompile(`paused .*`).ReplaceAllString(stderr.String(), "paused")
		testkit.Equal(t, "stderr", said, "task 1 cannot start yet: no worker runs\ntask 1 cannot start yet: all queues paused\n")
	})
}

// What may be over in a moment, such as the end of a dependency, is no reason
// at the first look.
func TestWaitNamesDependencyAtSecondLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runnerkit.OpenAlone(t, runner.Options{Sync: runner.SyncNormal})
		first, err := r.Enqueue(t.Context(), noop.With(0))
		testkit.NoError(t, err)
		second, err := r.Enqueue(t.Context(), noop.With(0, jobs.DependsOn(first.ID)))
		testkit.NoError(t, err)
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, TimedOut{time.Minute})
		defer stop()
		p, _, stderr := termtest.Printer(0)
		p.Now = time.Now
		o := NoteObstacles(ctx, r, p, []int64{second.ID}, "--timeout", false)
		testkit.Equal(t, "at once", stderr.String(), "")
		err = Each(ctx, r, []int64{second.ID}, func() { o.Look(ctx) }, func(jobs.Task) (bool, error) { return true, nil })
		testkit.Equal(t, "end", err.Error(), "gave up waiting after 1m")
		want := "task 2 cannot start yet: waits for task 1 (limit the wait with --timeout DURATION)\n"
		testkit.Equal(t, "stderr", stderr.String(), want)
	})
}

func TestNotesNameServiceWithAnotherDatabase(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	for service, want := range map[string]string{
		"": "",
		"/srv/q.db": "no worker runs on " + admin.Path(r) +
			"; the service of this machine uses /srv/q.db: sudo -u runner runner schedule add …\n",
	} {
		p, _, stderr := termtest.Printer(0)
		testkit.NoError(t, NoteWorkers(t.Context(), r, p, service, "schedule add"))
		testkit.Equal(t, "stderr", stderr.String(), want)
	}
}
