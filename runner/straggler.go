package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// Straggler is a process of a command that should be dead: its attempt is over, or was to end, or its worker is dead. While it lives its
// task is held back, so that nothing runs beside it, unless it is Unawaited.
type Straggler struct {
	PID       int
	Name      string
	State     string // the letter of ps; D: no signal reaches it until what it waits for has come about
	UID       int    // of its real user
	TaskID    int64
	Alone     bool // there is no worker that would have killed it
	Unawaited bool // its attempt has ended without it, because its worker may not kill it; the task does not wait for it
}

const (
	stragglerWait = 2 * time.Second // in which a guardian, or another worker, kills what can be killed
	stragglerLook = 100 * time.Millisecond
)

// Stragglers lists the processes of this user that should be dead. It looks for two seconds, unless there are none: what is still there
// then does not die by itself. Elsewhere than on Linux it finds none.
func (r *Runner) Stragglers(ctx context.Context) ([]Straggler, error) {
	found, err := r.stragglers(ctx)
	for end := now().Add(stragglerWait); err == nil && len(found) > 0 && now().Before(end); {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(stragglerLook):
		}
		var again []Straggler
		again, err = r.stragglers(ctx)
		found = slices.DeleteFunc(found, func(s Straggler) bool {
			return !slices.ContainsFunc(again, func(a Straggler) bool { return a.PID == s.PID && a.TaskID == s.TaskID })
		})
	}
	return found, err
}

// Outlived lists the processes of one task that should be dead. It does not wait: what its worker may kill is dead when an attempt ends.
func (r *Runner) Outlived(ctx context.Context, task jobs.Task) (found []Straggler, err error) {
	for _, p := range supervisor.FindMarked() {
		if p.Mark.Task() != task.ID {
			continue
		}
		over, ended, err := r.isOver(ctx, p.Mark, false)
		if err != nil {
			return nil, err
		}
		if over {
			found = append(found, straggler(p, false, ended))
		}
	}
	return found, nil
}

// isOneOf says whether a mark is that of one of some attempts.
func isOneOf(m supervisor.Mark, attempts []jobs.Attempt) bool {
	return slices.ContainsFunc(attempts, func(a jobs.Attempt) bool {
		return m == supervisor.MarkOf(a.WorkerID, supervisor.Key{ID: a.TaskID, Generation: a.GenerationID})
	})
}

func straggler(p supervisor.MarkedProcess, alone, ended bool) Straggler {
	return Straggler{PID: p.PID, Name: p.Name, State: p.State, UID: p.UID, TaskID: p.Mark.Task(), Alone: alone, Unawaited: ended}
}

func (r *Runner) stragglers(ctx context.Context) ([]Straggler, error) {
	marked := supervisor.FindMarked()
	if len(marked) == 0 {
		return nil, nil
	}
	workers, err := r.store.Workers(ctx, time.Time{})
	if err != nil {
		return nil, err
	}
	dead := map[string]bool{}
	for _, w := range workers {
		dead[w.ID] = r.isDead(w)
	}
	alone := !slices.ContainsFunc(workers, func(w db.WorkerInfo) bool { return !dead[w.ID] })
	var found []Straggler
	for _, p := range marked {
		i := slices.IndexFunc(workers, func(w db.WorkerInfo) bool { return p.Mark.OwnedBy(w.ID) })
		over, ended, err := r.isOver(ctx, p.Mark, i >= 0)
		if err != nil {
			return nil, err
		}
		if over || i >= 0 && dead[workers[i].ID] {
			found = append(found, straggler(p, alone, ended))
		}
	}
	return found, nil
}

// isDead says whether a worker that has not said goodbye is dead, or hangs.
func (r *Runner) isDead(w db.WorkerInfo) bool {
	lock, err := supervisor.TakeLock(r.lockPath(w.ID))
	if err == nil {
		_ = lock.Close() // closing is letting go: for a reaper that has just met it there is a next time
	}
	return err == nil || WorkerState(w, now()) == WorkerLost
}

// isOver says whether the attempt with a mark has ended, or should have, and which of both. The mark of an unknown worker may be one of
// another database.
func (r *Runner) isOver(ctx context.Context, m supervisor.Mark, known bool) (over, ended bool, err error) {
	if m.Task() == 0 { // of an on-failure command
		return false, false, nil
	}
	task, err := r.Get(ctx, m.Task())
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return known, known, nil
	case err != nil:
		return false, false, err
	case task.State != jobs.Running || m != supervisor.MarkOf(task.WorkerID, supervisor.Key{ID: task.ID, Generation: task.GenerationID}):
		if !known {
			attempts, err := r.store.Attempts(ctx, task.ID)
			over = isOneOf(m, attempts)
			return over, over, err
		}
		return true, true, nil
	}
	at, kill := now(), task.KillAfter+stopWait
	if asked := task.CancelRequestedAt; !asked.IsZero() && at.Sub(asked) > kill {
		return true, false, nil
	}
	return task.Timeout > 0 && at.Sub(task.StartedAt) > task.Timeout+kill, false, nil
}
