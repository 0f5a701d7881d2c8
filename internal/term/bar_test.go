package term

import (
	"testing"
	"time"

	"example.com/runner/internal/testkit"
)

func TestBarFits(t *testing.T) {
	for _, width := range []int{10, 20, 40, 60, 80, 120} {
		p, _, _ := bufferPrinter(width)
		b := Bar{p: p, name: "映画-tasks.jsonl", began: time.Now()}
		for _, total := range []int{0, 1_000_000} {
			b.Start("enqueueing", total)
			if line := b.line(Progress{Done: 681_204, Total: b.Total, PerSecond: 212_000}); Cells(line) >= width {
				t.Errorf("%d columns: got %d cells, want fewer: %s", width, Cells(line), line)
			}
		}
	}
	p, _, talk := bufferPrinter(80)
	b := Bar{p: p, name: "tasks.jsonl", began: p.Now().Add(-4700 * time.Millisecond)}
	b.Start("enqueueing", 1_000_000)
	got := b.line(Progress{Done: 681_204, Total: b.Total, PerSecond: 212_000})
	want := "  enqueueing tasks.jsonl  ███████░░░  68%  681,204/1,000,000  212,000/s  ETA 2s"
	testkit.Equal(t, "bar", got, want)
	b.Draw("  a longer line")
	b.Draw("  short")
	b.Finish("1,000,000 tasks enqueued")
	testkit.Equal(t, "stderr", talk.String(), "\r  a longer line\r  short        \r       \r  1,000,000 tasks enqueued in 4.7s\n")
}

// TestBarShowsLongWork checks when a bar appears: after a second on a terminal, after a minute elsewhere, and never with --json.
func TestBarShowsLongWork(t *testing.T) {
	for _, test := range []struct {
		what    string
		columns int
		json    bool
		want    string
	}{
		{"40 columns", 40, false, "\r████░░░░░░░░░  33%  4/12  2.0/s  ETA 4s\r███████░░░░░░  50%  6/12  2.0/s  ETA 3s"},
		{"no terminal", 0, false, "6 of 12 tasks ended (50%), 2.0/s, ETA 3s\n"},
		{"JSON", 40, true, ""},
	} {
		p, _, stderr := bufferPrinter(test.columns)
		now := time.Now()
		p.Now, p.JSON = func() time.Time { return now }, test.json
		b := NewBar(p, "")
		b.Start("waiting", 12)
		for i, after := range []time.Duration{0, 990 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, time.Minute} {
			now = now.Add(after)
			b.Show(Progress{Done: 2 + i, Total: 12, PerSecond: 2})
		}
		testkit.Equal(t, test.what, stderr.String(), test.want)
	}
}
