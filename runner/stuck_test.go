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

func TestHandlerThatIgnoresItsContextDelaysWorkByFiveSeconds(t *testing.T) {
	onFakeTime(t, WorkOptions{Grace: 10 * time.Second}, ignoreContext, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("1h"))
		f.work(time.Minute)
		testkit.Equal(f.T, "end of Work", time.Since(f.began), time.Minute+15*time.Second)
		f.want(id, jobs.Pending, jobs.ReasonShutdown)
		time.Sleep(time.Hour) // let the function return before the synctest bubble ends
	})
}
