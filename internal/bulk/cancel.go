package bulk

import (
	"context"
	"slices"
	"time"

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
		Read:    true,
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

// awaitStop prints which tasks are stopping. It then waits for these tasks and prints each one when it has stopped.
func (s *Action) awaitStop(ctx context.Context, r *runner.Runner, out *Outcomes, stopping []jobs.Task, began time.Time) error {
	p := out.p
	workers, err := r.Workers(ctx)
	if err != nil {
		return err
	}
	left := make([]int64, len(stopping))
	for i, t := range stopping {
		left[i] = t.ID
		switch {
		case p.JSON:
		case i < ShownLines:
			p.Say("%d stopping: %s", t.ID, stopText(t, workers))
		case i == ShownLines:
			p.Say("%s more stopping", humanize.Count(int64(len(stopping)-i)))
		}
	}
	return r.Changes(ctx, func() (bool, error) {
		tasks, err := TasksByID(ctx, r, left)
		if err != nil {
			return false, err
		}
		left = slices.DeleteFunc(left, func(id int64) bool {
			t, there := tasks[id]
			switch {
			case !there:
				out.Missing = append(out.Missing, id) // another process deleted the task
			case isStopping(t):
				return false
			default:
				out.Line(id, string(t.State), "after "+humanize.Took(p.Now().Sub(began)), s.Record(p, t))
			}
			return true
		})
		return len(left) == 0, p.Flush()
	})
}

// stopText says how runner is stopping a running task.
func stopText(t jobs.Task, workers []runner.Worker) string {
	alive := slices.ContainsFunc(workers, func(w runner.Worker) bool { return w.ID == t.WorkerID })
	switch {
	case len(workers) == 0:
		return "its worker was lost, and no other worker runs (runner work)"
	case !alive:
		return "its worker was lost; another worker takes over"
	case t.Job != jobs.CommandJob:
		return "the context of its function ends"
	case t.CancelNow || t.KillAfter == 0:
		return "SIGKILL sent"
	}
	return "SIGTERM sent, SIGKILL in " + timetext.WriteDuration(t.KillAfter)
}
