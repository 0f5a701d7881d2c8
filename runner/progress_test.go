package runner

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestProgressIsStoredDuringAndAfterAttempt(t *testing.T) {
	var seen []string
	look := func(f *fakeTimeTest) {
		task, err := f.Get(f.Context(), 1)
		if err != nil {
			f.Error(err)
		}
		seen = append(seen, string(taskspec.ProgressJSON(task.Progress)))
	}
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, _ string) (string, error) {
		generation := f.want(1, jobs.Running, "").GenerationID
		for i := range 1000 {
			Progress(ctx, int64(i), 1000, "")
		}
		look(f) // the task has no progress yet, because the worker stores the progress later
		time.Sleep(600 * time.Millisecond)
		look(f)
		Progress(ctx, 5, 0, strings.Repeat("é", taskspec.MaxText))
		time.Sleep(600 * time.Millisecond)
		look(f)
		testkit.Equal(f.T, "generation after a report", f.want(1, jobs.Running, "").GenerationID, generation)
		Progress(ctx, 1000, 1000, "done") // this progress is stored with the outcome of the attempt
		return "", nil
	}, func(f *fakeTimeTest) {
		f.enqueue(work.With(""))
		f.work(time.Minute)
		look(f)
		Progress(f.Context(), 1, 2, "") // outside of an attempt, Progress does nothing
	})
	text := `{"done":5,"total":null,"text":"` + strings.Repeat("é", (taskspec.MaxText-len("…"))/2) + `…"}`
	want := []string{"", `{"done":999,"total":1000,"text":null}`, text, `{"done":1000,"total":1000,"text":"done"}`}
	if got := strings.Join(seen, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
