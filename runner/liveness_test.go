package runner

import (
	"context"
	"testing"
	"time"

	"example.com/runner/db/dbtest"
	"example.com/runner/jobs"
)

// pulses are the calls of Options.Liveness. The loop makes them one after the other.
type pulses struct {
	began time.Time
	at    []time.Duration
	list  []Liveness
}

func (p *pulses) hear(pulse Liveness) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.at, p.list = append(p.at, time.Since(p.began)), append(p.list, pulse)
}

func TestPulsesComeWhileIdleAndWhileBusy(t *testing.T) {
	var heard pulses
	nap := func(_ context.Context, _ *bubble, in string) (string, error) {
		time.Sleep(10 * time.Minute)
		return in, nil
	}
	options := Options{Concurrency: 1, Lease: time.Hour, Grace: 5 * time.Minute, Liveness: heard.hear, LivenessEvery: 10 * time.Second}
	fake(t, options, nap, func(b *bubble) {
		id := b.enqueue(work.With("x", jobs.In(time.Minute)))
		b.work(8 * time.Minute) // 1 minute idle, 7 minutes busy, then 3 minutes of the drain
		b.want(id, jobs.Completed, "")
	})
	last := heard.list[len(heard.list)-1]
	if n := len(heard.at); n < 60 || n > 70 || heard.at[0] != 0 || !last.Draining || last.Running != 1 ||
		last.Left > 2*time.Minute+20*time.Second {
		t.Errorf("%d pulses, the last %+v", n, last)
	}
	for i := range heard.at[1:] {
		if gap := heard.at[i+1] - heard.at[i]; gap > 10*time.Second+5*time.Millisecond {
			t.Errorf("nothing was heard for %v", gap)
		}
	}
}

// TestNoPulseWithoutTheDatabase checks that a loop does not count as alive while it cannot read the database.
func TestNoPulseWithoutTheDatabase(t *testing.T) {
	var heard pulses
	nap := func(_ context.Context, _ *bubble, in string) (string, error) {
		time.Sleep(10 * time.Minute)
		return in, nil
	}
	fake(t, Options{Concurrency: 1, Lease: 24 * time.Hour, Liveness: heard.hear, LivenessEvery: 10 * time.Second}, nap, func(b *bubble) {
		b.enqueue(work.With("x"))
		raw := dbtest.Raw(t, b.Path())
		rename := func(from, to string) func() {
			return func() {
				if _, err := raw.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to); err != nil {
					t.Error(err)
				}
			}
		}
		b.within(2*time.Minute+time.Second, rename("tasks", "hidden"))
		b.within(4*time.Minute+time.Second, rename("hidden", "tasks"))
		b.work(11 * time.Minute)
		raw.Close()
	})
	before, after := 0, 0
	for _, at := range heard.at {
		switch {
		case at <= 2*time.Minute+2*time.Second:
			before++
		case at < 4*time.Minute:
			t.Errorf("heard after %v", at)
		default:
			after++
		}
	}
	if before < 12 || after < 30 {
		t.Errorf("got %+v, %+v; want before >= 12, after >= 30", before, after)
	}
}

func TestTheFirstPulseComesAfterTheFirstClaim(t *testing.T) {
	var heard pulses
	fake(t, Options{Liveness: heard.hear}, nil, func(b *bubble) {
		b.enqueue(work.With("x"))
		b.work(time.Minute)
	})
	if len(heard.list) == 0 || heard.list[0].Running != 1 {
		t.Errorf("got %+v; want len(heard.list) != 0, heard.list[0].Running = 1", heard.list)
	}
}
