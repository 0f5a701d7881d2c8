package runner

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/process"
	"example.com/runner/jobs"
)

// Straggler is a process of a command that should be dead: its attempt is over, or was to end, or its worker is dead. While it lives its
// task is held back, so that nothing runs beside it, unless it is Foreign.
type Straggler struct {
	PID     int
	Name    string
	State   string // the letter of ps; D: no signal reaches it until what it waits for has come about
	UID     int    // of its real user
	TaskID  int64
	Alone   bool // there is no worker that would have killed it
	Foreign bool // it is another user's than this process's. Workers without the right to kill it do not wait for it
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
	for _, p := range process.FindMarked() {
		if p.Mark.Task() != task.ID {
			continue
		}
		over, err := r.isOver(ctx, p.Mark, false)
		if err != nil {
			return nil, err
		}
		if over {
			found = append(found, straggler(p, false))
		}
	}
	return found, nil
}

// ended says whether a mark is that of one of some attempts, which have ended.
func ended(m process.Mark, attempts []jobs.Attempt) bool {
	return slices.ContainsFunc(attempts, func(a jobs.Attempt) bool {
		return m == process.MarkOf(a.WorkerID, process.Key{ID: a.TaskID, Generation: a.GenerationID})
	})
}

func straggler(p process.Marked, alone bool) Straggler {
	return Straggler{PID: p.PID, Name: p.Name, State: p.State, UID: p.UID, TaskID: p.Mark.Task(), Alone: alone, Foreign: os.Getuid() != p.UID}
}

func (r *Runner) stragglers(ctx context.Context) ([]Straggler, error) {
	marked := process.FindMarked()
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
		over := false
		if i := slices.IndexFunc(workers, func(w db.WorkerInfo) bool { return p.Mark.Of(w.ID) }); i >= 0 && dead[workers[i].ID] {
			over = true
		} else if over, err = r.isOver(ctx, p.Mark, i >= 0); err != nil {
			return nil, err
		}
		if over {
			found = append(found, straggler(p, alone))
		}
	}
	return found, nil
}

// isDead says whether a worker that has not said goodbye is dead, or hangs.
func (r *Runner) isDead(w db.WorkerInfo) bool {
	lock, err := process.TakeLock(r.lockPath(w.ID))
	if err == nil {
		_ = lock.Close() // closing is letting go: for a reaper that has just met it there is a next time
	}
	return err == nil || WorkerState(w, now()) == WorkerLost
}

// isOver says whether the attempt with a mark has ended, or should have. A mark of an unknown worker may be that of another database.
func (r *Runner) isOver(ctx context.Context, m process.Mark, known bool) (bool, error) {
	if m.Task() == 0 { // of an on-failure command
		return false, nil
	}
	task, err := r.Get(ctx, m.Task())
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return known, nil
	case err != nil:
		return false, err
	case task.State != jobs.Running || m != process.MarkOf(task.WorkerID, process.Key{ID: task.ID, Generation: task.GenerationID}):
		if known {
			return true, nil
		}
		attempts, err := r.store.Attempts(ctx, task.ID)
		return ended(m, attempts), err
	}
	at, kill := now(), task.KillAfter+stopWait
	if asked := task.CancelRequestedAt; !asked.IsZero() && at.Sub(asked) > kill {
		return true, nil
	}
	return task.Timeout > 0 && at.Sub(task.StartedAt) > task.Timeout+kill, nil
}
