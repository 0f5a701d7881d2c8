package ui

import (
	"testing"
	"time"

	"example.com/runner/test/testkit"
)

func TestBarFits(t *testing.T) {
	for _, width := range []int{10, 20, 40, 60, 80, 120} {
		p, _, stderr := bufferPrinter(width)
		now := time.Now()
		p.Now = func() time.Time { now = now.Add(time.Minute); return now }
		b := NewBar(p, "enqueueing", "映画-tasks.jsonl")
		b.Total = 1_000_000
		b.Show(681_204, 1_000)
		if cells := Cells(stderr.String()) - Cells(eraseLine); cells >= width {
			t.Errorf("got %d cells, want fewer than %d: %q", cells, width, stderr)
		}
	}
}

func TestBarShowsLongWork(t *testing.T) {
	for _, test := range []struct {
		what    string
		columns int
		json    bool
		want    string
	}{
		{"40 columns", 40, false, eraseLine + "  waiting  33%  4/12  1 failed  ETA 5s…" + eraseLine +
			"  waiting  50%  6/12  1 failed  ETA 1m" + eraseLine + "  done in 1m01s\n"},
		{"no terminal", 0, false, ""},
		{"JSON", 40, true, ""},
	} {
		p, _, stderr := bufferPrinter(test.columns)
		now := time.Now()
		p.Now, p.JSON = func() time.Time { return now }, test.json
		b := NewBar(p, "waiting", "")
		b.Total = 12
		for i, after := range []time.Duration{0, 990 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, time.Minute} {
			now = now.Add(after)
			b.Show(2+i, 1)
		}
		b.Finish("done")
		testkit.Equal(t, test.what, stderr.String(), test.want)
	}
}

func TestBarWithoutTotal(t *testing.T) {
	p, _, stderr := bufferPrinter(80)
	now := time.Now()
	p.Now = func() time.Time { return now }
	b := NewBar(p, "enqueueing", "tasks.jsonl")
	b.Step(256)
	now = now.Add(2 * time.Second)
	b.Step(512)
	testkit.Equal(t, "bar", stderr.String(), eraseLine+"  enqueueing tasks.jsonl  512  128/s")
}
