package bulk

import (
	"context"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/term"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Cancel cancels the selected tasks. If wait is set, it also waits until the running tasks have stopped.
func (s *Action) Cancel(ctx context.Context, r *runner.Runner, p *term.Printer, how runner.CancelOptions, wait bool) error {
	began := p.Now()
	var stopping []jobs.Task
	return s.Run(ctx, r, p, Change{
		Refusal: func(jobs.Task) string { return "" },
		Apply: func(ctx context.Context, ids []int64) ([]runner.ActionResult, error) {
			return r.Cancel(ctx, ids, how)
		},
		Print: func(out *Outcomes, result runner.ActionResult, t jobs.Task) {
			switch requested := result.State == jobs.Running; {
			case requested && wait:
				stopping = append(stopping, t)
			case isStopping(t):
				out.Line(t.ID, string(t.State), "stopping", s.Record(p, t))
			default:
				out.Line(t.ID, string(t.State), "", s.Record(p, t))
			}
		},
		After: func(out *Outcomes) error {
			if len(stopping) == 0 {
				return nil
			}
			return s.awaitStop(ctx, r, out, stopping, began)
		},
	})
}

// isStopping reports whether a task is still running after a request to cancel it.
func isStopping(t jobs.Task) bool { return t.State == jobs.Running && !t.CancelRequestedAt.IsZero() }

// awaitStop waits for tasks that are stopping, says once what they wait for, and
// prints each one when it has stopped. It gives up on a task whose worker is
// gone if no other worker can end it.
func (s *Action) awaitStop(ctx context.Context, r *runner.Runner, out *Outcomes, stopping []jobs.Task, began time.Time) error {
	p := out.p
	workers, err := r.Workers(ctx)
	if err != nil {
		return err
	}
	left := make([]int64, len(stopping))
	for i, t := range stopping {
		left[i] = t.ID
		if text, ends := stopText(t, workers); ends && i < ShownLines { // even those that have stopped since
			p.Tell("%d stopping: %s", t.ID, text)
		}
	}
	if len(left) > ShownLines {
		p.Tell("%s more stopping", humanize.Count(int64(len(left)-ShownLines)))
	}

	return r.Changes(ctx, func() (bool, error) {
		tasks, err := TasksByID(ctx, r, left)
		if err != nil {
			return false, err
		}
		workers, err := r.Workers(ctx)
		if err != nil {
			return false, err
		}
		left = slices.DeleteFunc(left, func(id int64) bool {
			t, there := tasks[id]
			text, ends := stopText(t, workers)
			switch {
			case !there:
				out.Missing = append(out.Missing, id) // another process deleted the task
			case !isStopping(t):
				out.Line(id, string(t.State), "after "+humanize.Took(p.Now().Sub(began)), s.Record(p, t))
			case !ends:
				out.Refuse(id, string(t.State), text, s.Record(p, t))
			default:
				return false
			}
			return true
		})
		return len(left) == 0, p.Flush()
	})
}

// whyLeft is why cancel doesn't wait for a running task. The request to cancel
// it is stored, so the next worker ends it.
const whyLeft = "its worker is gone, and no other worker runs; the next one cancels it"

// stopText says what ends a running task. ends is false if nobody does.
func stopText(t jobs.Task, workers []runner.Worker) (text string, ends bool) {
	live := slices.DeleteFunc(slices.Clone(workers), func(w runner.Worker) bool { return w.State == admin.WorkerLost })
	switch {
	case len(live) == 0:
		return whyLeft, false
	case !slices.ContainsFunc(live, func(w runner.Worker) bool { return w.ID == t.WorkerID }):
		return "its worker is gone; another worker takes over", true
	case t.Job != jobs.CommandJob:
		return "the context of its function ends", true
	case t.CancelNow || t.KillAfter == 0:
		return "SIGKILL sent", true
	}
	return "SIGTERM sent, SIGKILL in " + timetext.WriteDuration(t.KillAfter), true
}
