package orphans

import (
	"context"
	"errors"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Process is a process of a task's command that should be dead, because
// its attempt has ended (or should have), or its worker is dead. The task
// doesn't start again while it lives, unless Unawaited is set.
type Process struct {
	PID       int
	Name      string
	State     string // letter as in ps; in "D", no signal reaches the process until its system call returns
	UID       int    // user who runs the process
	TaskID    int64
	Alone     bool // whether no worker of the database lives, so that none will kill it
	Unawaited bool // whether the worker ended the attempt without it, because it may not kill it
}

const (
	orphanWait = 2 * time.Second        // a guardian or a worker needs no longer to kill an orphan
	orphanLook = 100 * time.Millisecond // interval between two searches
	stopWait   = 5 * time.Second        // after kill_after, a worker needs no longer to end an attempt
)

// Find returns the processes of this user that should be dead but
// still run. Workers may just be killing some of them, so it searches for up to
// 2 s and returns only those that run all the time. Linux only.
func Find(ctx context.Context, r *runner.Runner) ([]Process, error) {
	found, err := orphans(ctx, r)
	for end := time.Now().Add(orphanWait); err == nil && len(found) > 0 && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(orphanLook):
		}

		var again []Process
		again, err = orphans(ctx, r)
		found = slices.DeleteFunc(found, func(s Process) bool {
			return !slices.ContainsFunc(again, func(a Process) bool { return a.PID == s.PID && a.TaskID == s.TaskID })
		})
	}

	return found, err
}

// Of returns those of one task. It searches only once, because a worker
// kills an attempt's processes before the attempt ends.
func Of(ctx context.Context, r *runner.Runner, task jobs.Task) (found []Process, err error) {
	for _, p := range supervisor.FindMarked() {
		if p.Mark.ID != task.ID {
			continue
		}
		over, ended, err := isOver(ctx, r, p.Mark, false)
		if err != nil {
			return nil, err
		}
		if over {
			found = append(found, orphan(p, false, ended))
		}
	}

	return found, nil
}

// markOf returns the mark of the processes of an attempt.
func markOf(worker string, task, generation int64) supervisor.Mark {
	return supervisor.Mark{Worker: worker, Key: supervisor.Key{ID: task, Generation: generation}}
}

func orphan(p supervisor.MarkedProcess, alone, ended bool) Process {
	return Process{p.PID, p.Name, p.State, p.UID, p.Mark.ID, alone, ended}
}

func orphans(ctx context.Context, r *runner.Runner) ([]Process, error) {
	marked := supervisor.FindMarked()
	if len(marked) == 0 {
		return nil, nil
	}

	workers, err := db.Of(r).Workers(ctx, time.Time{})
	if err != nil {
		return nil, err
	}

	dead := map[string]bool{}
	for _, w := range workers {
		dead[w.ID] = isDead(r, w)
	}

	alone := !slices.ContainsFunc(workers, func(w db.WorkerInfo) bool { return !dead[w.ID] })
	var found []Process
	for _, p := range marked {
		i := slices.IndexFunc(workers, func(w db.WorkerInfo) bool { return p.Mark.Worker == w.ID })
		over, ended, err := isOver(ctx, r, p.Mark, i >= 0)
		if err != nil {
			return nil, err
		}
		if over || i >= 0 && dead[workers[i].ID] {
			found = append(found, orphan(p, alone, ended))
		}
	}

	return found, nil
}

// isDead reports whether a worker that hasn't recorded its end has died or
// hangs.
func isDead(r *runner.Runner, w db.WorkerInfo) bool {
	return supervisor.Free(supervisor.LockPath(db.Of(r).Dir(), w.ID)) || time.Since(w.BeatAt) > w.Lease
}

// isOver reports whether a marked process's attempt has ended or should have,
// and whether it has ended. known tells whether the worker in the mark belongs
// to this database. If not, the process may belong to another database's task.
func isOver(
	ctx context.Context, r *runner.Runner, m supervisor.Mark, known bool,
) (over, ended bool, err error) {
	task, err := r.Get(ctx, m.ID)
	switch {
	case errors.Is(err, jobs.ErrNotFound): // nobody knows any more whether its command might leave it behind
		return false, false, nil
	case err != nil:
		return false, false, err
	case task.State != jobs.Running || m != markOf(task.WorkerID, task.ID, task.GenerationID):
		attempts, err := db.Of(r).Attempts(ctx, task.ID)
		if err != nil {
			return false, false, err
		}
		i := slices.IndexFunc(attempts, func(a admin.Attempt) bool {
			return m == markOf(a.WorkerID, a.TaskID, a.GenerationID)
		})
		over = known || i >= 0
		if i >= 0 && attempts[i].ChildrenLeft > 0 {
			over = false // the command has left the process behind on purpose (--leave-children)
		}
		return over, over, nil
	}

	at, kill := time.Now(), task.KillAfter+stopWait
	if asked := task.CancelRequestedAt; !asked.IsZero() && at.Sub(asked) > kill {
		return true, false, nil
	}

	return task.Timeout > 0 && at.Sub(task.StartedAt) > task.Timeout+kill, false, nil
}
