package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/process"
	"example.com/runner/jobs"
)

// Straggler is a process of a command that should be dead: its attempt is over, or was to end, or its worker is dead. While it lives its
// task is held back, so that nothing runs beside it.
type Straggler struct {
	PID    int
	Name   string
	State  string // the letter of ps; D: no signal reaches it until what it waits for has come about
	TaskID int64
	Alone  bool // there is no worker that would have killed it
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

func (r *Runner) stragglers(ctx context.Context) ([]Straggler, error) {
	tagged := process.FindTagged()
	if len(tagged) == 0 {
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
	for _, p := range tagged {
		over, known := dead[p.Worker]
		if known && !over { // not known: of another database, most likely
			if over, err = r.isOver(ctx, p.Key); err != nil {
				return nil, err
			}
		}
		if over {
			found = append(found, Straggler{PID: p.PID, Name: p.Name, State: p.State, TaskID: p.ID, Alone: alone})
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

// isOver says whether a claim has ended, or should have.
func (r *Runner) isOver(ctx context.Context, k process.Key) (bool, error) {
	task, err := r.Get(ctx, k.ID)
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	case task.GenerationID != k.Generation || task.State != jobs.Running:
		return true, nil
	}
	at, kill := now(), task.KillAfter+stopWait
	if asked := task.CancelRequestedAt; !asked.IsZero() && at.Sub(asked) > kill {
		return true, nil
	}
	return task.Timeout > 0 && at.Sub(task.StartedAt) > task.Timeout+kill, nil
}
