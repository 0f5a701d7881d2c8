package runner

import (
	"context"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// ignoreContext is a handler that ignores its context. Its input says how long
// it runs.
func ignoreContext(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
	d, err := time.ParseDuration(in)
	time.Sleep(d)
	return "late", err
}

func TestHandlerThatIgnoresItsTimeoutIsStuck(t *testing.T) {
	onFakeTime(t, WorkOptions{}, ignoreContext, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("5m", jobs.Timeout(time.Minute), jobs.MaxAttempts(1)))
		f.after(time.Minute+9*time.Second, func() { f.wantWait(id, "running") })
		f.after(time.Minute+11*time.Second, func() { f.wantWait(id, "stuck") })
		f.work(10 * time.Minute)
		f.want(id, jobs.Completed, "") // the handler has kept its slot, so the worker accepts its late result
	})
}

func (f *fakeTimeTest) wantWait(id int64, reason string) {
	task, err := f.Get(f.Context(), id)
	wait, whyErr := f.Why(f.Context(), task)
	if err != nil || whyErr != nil || wait.Reason != reason {
		f.Errorf("after %v task %d: got reason %q (%v, %v), want %q", time.Since(f.began), id, wait.Reason, err, whyErr, reason)
	}
}

func TestHandlerThatIgnoresItsContextDelaysWorkByFiveSeconds(t *testing.T) {
	onFakeTime(t, WorkOptions{Grace: 10 * time.Second}, ignoreContext, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("1h"))
		f.work(time.Minute)
		testkit.Equal(f.T, "end of Work", time.Since(f.began), time.Minute+15*time.Second)
		f.want(id, jobs.Pending, jobs.ReasonShutdown)
		time.Sleep(time.Hour) // let the function return before the synctest bubble ends
	})
}
