package view

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Progress computes what the progress bar of "status --follow" shows: the progress of a batch, or of queues since the first call of Read.
type Progress struct {
	Batch int64 // id of the batch; 0 to show the progress of queues instead

	began time.Time
	base  term.Progress // numbers of ended tasks at the first call of Read
	meter term.Meter
}

// Read returns the progress, and the text before the progress bar. The parameter s is the current status, with the queues to count.
func (w *Progress) Read(ctx context.Context, r *runner.Runner, s *Status) (head string, now term.Progress, err error) {
	if w.Batch != 0 {
		head = fmt.Sprintf("batch %d", w.Batch)
		now, err = w.ofBatch(ctx, r)
	} else {
		first := w.began.IsZero()
		if first {
			w.began = s.Now
		}
		head = "since " + w.began.Format("15:04:05")
		if now, err = w.ofQueues(ctx, r, s); first {
			w.base = now
		}
		now.Done, now.Failed = max(now.Done-w.base.Done, 0), max(now.Failed-w.base.Failed, 0)
		now.Total += now.Done
	}
	now.PerSecond = w.meter.PerSecond(s.Now, now.Done)
	return head, now, err
}

// ofBatch counts the tasks of the batch. Failed and cancelled tasks count as failed.
func (w *Progress) ofBatch(ctx context.Context, r *runner.Runner) (now term.Progress, err error) {
	f := jobs.Filter{Batch: w.Batch}
	if now.Total, err = r.Count(ctx, f); err != nil {
		return now, err
	}
	f.States = []jobs.State{jobs.Completed}
	completed, err := r.Count(ctx, f)
	if err != nil {
		return now, err
	}
	f.States = []jobs.State{jobs.Failed, jobs.Cancelled}
	now.Failed, err = r.Count(ctx, f)
	now.Done = completed + now.Failed
	return now, err
}

// ofQueues counts the tasks of the queues in s. Total is the number of unfinished tasks, without scheduled tasks. Done is the number of
// tasks that have ended since the start of the minute in which Read was first called. Failed is the number of those that did not complete.
// Done and Failed include deleted tasks.
func (w *Progress) ofQueues(ctx context.Context, r *runner.Runner, s *Status) (now term.Progress, err error) {
	points, err := admin.History(ctx, r, w.began.Truncate(time.Minute))
	if err != nil {
		return now, err
	}
	for _, q := range s.Queues {
		now.Total += q.Counts[jobs.Pending] + q.Counts[jobs.Running] + q.Counts[jobs.Retrying] + q.Counts[jobs.Blocked]
	}
	for _, point := range points {
		if !slices.ContainsFunc(s.Queues, func(q runner.Queue) bool { return q.Queue == point.Queue }) {
			continue
		}
		if now.Done += point.N; point.State != jobs.Completed {
			now.Failed += point.N
		}
	}
	return now, nil
}
