package runner

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// Ended is how many tasks of a queue ended in one way within a minute, or within an hour of more than two days ago.
type Ended = db.Ended

// History returns how many tasks ended since a time, by queue and state, oldest first: by the minute for two days, by the hour for a
// year. It is counted when they end, and outlives them.
func (r *Runner) History(ctx context.Context, since time.Time) ([]Ended, error) {
	return r.store.History(ctx, since)
}

// Figures are what the last hour of a queue tells. Of the times, the last attempt of each task that ended counts: how long it waited
// from when it was due to when it started, and how long it ran. They are exact (nearest rank, in milliseconds) while no more than
// 10,000 tasks of all queues ended within the hour, and beyond that those of the last 10,000.
type Figures struct {
	Tasks            int // that the times are of; 0: there are none
	WaitP50, WaitP95 time.Duration
	RunP50, RunP95   time.Duration
	// Starts is how many attempts started: exact as above, and beyond 10,000 tasks the number that ended, which is counted, times the
	// attempts that each of the last 10,000 took.
	Starts int
}

// figuresOver is how far back Figures look.
const figuresOver = time.Hour

// Figures returns them for a queue.
func (r *Runner) Figures(ctx context.Context, queue string) (Figures, error) {
	since := now().Add(-figuresOver)
	recent, err := r.store.Recent(ctx, queue, since)
	if err != nil {
		return Figures{}, err
	}
	f := Figures{Tasks: len(recent.Runs), WaitP50: rank(recent.Waits, 50), WaitP95: rank(recent.Waits, 95),
		RunP50: rank(recent.Runs, 50), RunP95: rank(recent.Runs, 95), Starts: recent.Starts}
	if !recent.Whole && f.Tasks > 0 {
		history, err := r.store.History(ctx, since)
		if err != nil {
			return Figures{}, err
		}
		ended := 0
		for _, h := range history {
			if h.Queue == queue && h.Span == time.Minute {
				ended += h.N
			}
		}
		f.Starts = int(float64(recent.Starts) / float64(f.Tasks) * float64(max(ended, f.Tasks)))
	}
	return f, nil
}

// rank is the value below or at which that many percent of sorted values lie; 0 for none.
func rank(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

// Stretch is what ended within a stretch of time. The times are of a sample: WaitP50 is how long half of them waited at most, from when
// they were due until they started.
type Stretch struct {
	At               time.Time // when it begins
	Ended            map[jobs.State]int
	Sampled          int // that the times are of; 0: there are none
	WaitP50, WaitP95 time.Duration
	RunP50, RunP95   time.Duration
}

// sampled is how many tasks of a stretch its times are taken from.
const sampled = 30

// Trend returns what ended in the last n stretches of time of a length in whole minutes, the present one last. Counts outlive the tasks;
// times are those of up to 30 tasks of each stretch that still exist. It costs the same however many tasks there are.
func (r *Runner) Trend(ctx context.Context, length time.Duration, n int) ([]Stretch, error) {
	since := now().Truncate(length).Add(-time.Duration(n-1) * length)
	list, err := r.store.Trend(ctx, since, length, n, sampled)
	if err != nil {
		return nil, err
	}
	steps := make([]Stretch, n)
	for i, s := range list {
		steps[i] = Stretch{At: since.Add(time.Duration(i) * length), Ended: s.Ended, Sampled: len(s.Runs), WaitP50: rank(s.Waits, 50), WaitP95: rank(s.Waits, 95),
			RunP50: rank(s.Runs, 50), RunP95: rank(s.Runs, 95)}
	}
	return steps, nil
}

// Total is how many attempts of a job in a queue ended in one way, since the database was made.
type Total = db.Total

// Totals returns how many attempts ended how, by queue and job. They only grow. Workers add to them with their heartbeats.
func (r *Runner) Totals(ctx context.Context) ([]Total, error) { return r.store.Totals(ctx) }
