package runner

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
)

func TestProgressIsSeenWhileTheTaskRunsAndAfter(t *testing.T) {
	var seen []string
	look := func(b *bubble) {
		task, err := b.Get(b.Context(), 1)
		if err != nil {
			b.Error(err)
		}
		seen = append(seen, string(task.Progress))
	}
	fake(t, Options{}, func(ctx context.Context, b *bubble, _ string) (string, error) {
		generation := b.want(1, jobs.Running, "").GenerationID
		for i := range 1000 {
			Progress(ctx, int64(i), 1000, "")
		}
		look(b) // not stored yet
		time.Sleep(600 * time.Millisecond)
		look(b)
		Progress(ctx, 5, 0, strings.Repeat("é", jobs.MaxText))
		time.Sleep(600 * time.Millisecond)
		look(b)
		if b.want(1, jobs.Running, "").GenerationID != generation {
			b.Error("a report is a new generation")
		}
		Progress(ctx, 1000, 1000, "done") // stored with the end of the attempt
		return "", nil
	}, func(b *bubble) {
		b.enqueue(work.With(""))
		b.work(time.Minute)
		look(b)
		Progress(b.Context(), 1, 2, "") // does nothing outside of an attempt
	})
	text := `{"done":5,"total":null,"text":"` + strings.Repeat("é", (jobs.MaxText-len("…"))/2) + `…"}`
	want := []string{"", `{"done":999,"total":1000,"text":null}`, text, `{"done":1000,"total":1000,"text":"done"}`}
	if got := strings.Join(seen, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
