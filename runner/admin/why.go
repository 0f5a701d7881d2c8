package admin

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Wait explains why an unfinished task doesn't run yet, or where it runs.
// Reason decides which of the other fields are set.
type Wait struct {
	Reason     WaitReason // empty if the task has finished
	Worker     string     // name of the worker that runs the task, or ran it
	StuckSince time.Time
	Backoff    time.Duration // delay from the end of the last attempt to the start of the next one
	Tasks      []int64       // ids of the tasks that the task waits for, or that run on its workers
	Limit      LimitStatus
	Pause      Pause
	AllQueues  bool     // whether Pause is the pause of all queues
	Draining   []string // names of the workers that are draining
	Ahead      int      // number of tasks in its queue that start before the task; 10,001 stands for any number above 10,000
	Busy       int      // number of slots in use on the workers that may run the task
	Slots      int      // number of all slots of the workers that may run the task
}

// WaitReason is why a task waits, or that it runs.
type WaitReason string

// The reasons. Words with a capital letter are fields of Wait or of the task.
const (
	WaitRunning     WaitReason = "running"      // Worker has run it since its StartedAt
	WaitStuck       WaitReason = "stuck"        // Worker runs it, although its context ended more than 10 s ago, at StuckSince
	WaitWorkerGone  WaitReason = "worker_gone"  // Worker is gone; another worker will take the task over
	WaitNoSuccessor WaitReason = "no_successor" // Worker is gone, and no other worker runs
	WaitScheduled   WaitReason = "scheduled"    // it starts at its RunAt
	WaitBackoff     WaitReason = "backoff"      // its next attempt starts at its RunAt, after the delay Backoff
	WaitTaskPaused  WaitReason = "task_paused"  // somebody paused it, at its PausedAt
	WaitDependency  WaitReason = "dependency"   // Tasks, which it depends on, have not finished
	WaitLane        WaitReason = "lane"         // Tasks hold its lane
	WaitLaneFree    WaitReason = "lane_free"    // its lane is free, and a worker will give the lane to the next task
	WaitLimit       WaitReason = "limit"        // Limit lets no task start now
	WaitPaused      WaitReason = "paused"       // Pause keeps its queue, or with AllQueues every queue, from starting tasks
	WaitNoWorker    WaitReason = "no_worker"    // no worker is ready; the workers in Draining start nothing more
	WaitNoQueue     WaitReason = "no_queue"     // no ready worker serves its queue
	WaitNoJob       WaitReason = "no_job"       // no ready worker of its queue has registered its job
	WaitSlots       WaitReason = "slots"        // no slot is free: see Ahead, Busy and Slots; Tasks run on the workers that may run it
)

// Why returns the reason why an unfinished task waits, or the worker that runs
// it.
func Why(ctx context.Context, r *runner.Runner, t jobs.Task) (Wait, error) {
	if t.State.Finished() {
		return Wait{}, nil
	}
	c, err := readContext(ctx, r, t)
	return c.wait(t, now()), err
}

// waitContext has the data, besides the task itself, that decides when the task
// starts.
type waitContext struct {
	ahead    int     // number of tasks in the task's queue that start before it
	holders  []int64 // ids of the tasks that hold the task's lane
	pauses   PauseMap
	limits   db.Limits
	workers  []Worker // workers with a recent heartbeat
	reserver string   // id of the live worker that has reserved the task (runner run)
}

// mostAhead is the largest number of earlier tasks that Why counts exactly. It
// limits the time of a call.
const mostAhead = 10_000

func readContext(ctx context.Context, r *runner.Runner, t jobs.Task) (c waitContext, err error) {
	store := db.Of(r)
	if c.ahead, err = store.QueuePosition(ctx, t, mostAhead+1); err != nil {
		return c, err
	}
	if c.workers, err = Workers(ctx, r); err != nil {
		return c, err
	}
	if c.pauses, err = Pauses(ctx, r); err != nil {
		return c, err
	}

	limits, err := Limits(ctx, r)
	if err != nil {
		return c, err
	}

	c.limits = db.LimitsOf(limits)
	if t.State == jobs.Blocked && t.Lane != "" {
		if c.holders, err = store.LaneHolders(ctx, t.Lane); err != nil {
			return c, err
		}
	}

	reserver, err := store.ReservedBy(ctx, t.ID)
	if err != nil {
		return c, err
	}
	if slices.ContainsFunc(c.workers, func(w Worker) bool { return w.ID == reserver && w.State != WorkerLost }) {
		c.reserver = reserver
	}

	return c, nil
}

// wait returns the reason why an unfinished task waits, or the worker that runs
// it.
func (c waitContext) wait(t jobs.Task, now time.Time) Wait {
	switch {
	case t.State.Finished():
		return Wait{}
	case t.State == jobs.Running:
		return c.running(t, now)
	case t.RunAt.After(now) && t.State == jobs.Retrying:
		return Wait{Reason: WaitBackoff, Backoff: t.RunAt.Sub(t.UpdatedAt)}
	case t.RunAt.After(now) && t.State == jobs.Scheduled:
		return Wait{Reason: WaitScheduled}
	case t.State == jobs.Blocked:
		return c.blocked(t)
	}

	if pause, ok := c.pauses.Of(t.Queue); ok {
		return Wait{Reason: WaitPaused, Pause: pause, AllQueues: pause != c.pauses[t.Queue]}
	}

	return c.unserved(t)
}

// unserved returns why no worker starts a due task.
func (c waitContext) unserved(t jobs.Task) Wait {
	var draining []string
	ready := slices.DeleteFunc(slices.Clone(c.workers), func(w Worker) bool {
		if c.reserver != "" || len(w.Jobs) == 0 {
			return w.ID != c.reserver
		}
		if w.State == WorkerDraining {
			draining = append(draining, w.Name)
		}
		return w.State == WorkerLost || w.State == WorkerDraining
	})
	if len(ready) == 0 {
		return Wait{Reason: WaitNoWorker, Draining: draining}
	}

	serving := slices.DeleteFunc(ready, func(w Worker) bool { return !serves(w, t.Queue) })
	if len(serving) == 0 {
		return Wait{Reason: WaitNoQueue}
	}

	able := slices.DeleteFunc(serving, func(w Worker) bool { return w.ID != c.reserver && !slices.Contains(w.Jobs, t.Job) })
	if len(able) == 0 {
		return Wait{Reason: WaitNoJob}
	}
	if l, held := c.limits.Holding(&t); held {
		return Wait{Reason: WaitLimit, Limit: l}
	}

	w := Wait{Reason: WaitSlots, Ahead: c.ahead}
	for _, worker := range able {
		w.Busy += min(len(worker.Running), worker.Slots) // Running may exceed Slots, because the tasks of a batch share a slot
		w.Slots += worker.Slots
		w.Tasks = append(w.Tasks, worker.Running...)
	}

	return w
}

// blocked returns the reason why a task is blocked: its own pause, the tasks
// that it waits for, or its lane.
func (c waitContext) blocked(t jobs.Task) Wait {
	if !t.PausedAt.IsZero() {
		return Wait{Reason: WaitTaskPaused}
	}
	if tasks := slices.Concat(t.DependsOn, t.DependsOnAny); len(tasks) > 0 {
		return Wait{Reason: WaitDependency, Tasks: tasks}
	}

	lane := c.limits[Target{Kind: LaneTarget, Name: t.Lane}]
	if len(c.holders) >= max(lane.Running, 1) {
		return Wait{Reason: WaitLane, Tasks: c.holders}
	}
	if l, held := c.limits.Holding(&t); held {
		return Wait{Reason: WaitLimit, Limit: l}
	}

	return Wait{Reason: WaitLaneFree}
}

// running returns the worker that runs a task, or reports that this worker is
// gone.
func (c waitContext) running(t jobs.Task, now time.Time) Wait {
	lost := func(w Worker) bool { return w.State == WorkerLost }
	at := slices.IndexFunc(c.workers, func(w Worker) bool { return w.ID == t.WorkerID })
	w := Wait{Reason: WaitRunning, Worker: t.Worker}
	if at < 0 || lost(c.workers[at]) {
		w.Reason = WaitWorkerGone
		if !slices.ContainsFunc(c.workers, func(w Worker) bool { return !lost(w) }) {
			w.Reason = WaitNoSuccessor
		}
	} else if since, stuck := taskspec.Stuck(&t, now); stuck {
		w.Reason, w.StuckSince = WaitStuck, since
	}

	return w
}
