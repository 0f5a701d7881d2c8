package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// Why says in one sentence what an unfinished task waits for, or where it runs; it is empty for a finished one.
func (r *Runner) Why(ctx context.Context, t jobs.Task) (string, error) {
	if t.State.Finished() {
		return "", nil
	}
	s, err := r.surroundings(ctx, t)
	return s.why(t, now()), err
}

// surroundings are what decides when a task starts, besides itself.
type surroundings struct {
	ahead   int   // tasks of its queue that start before it
	holder  int64 // who has its lane; 0: nobody
	gates   Gates
	workers []WorkerInfo  // that gave a sign of life lately
	run     time.Duration // how long half of the tasks of its queue took at most, lately; 0: not known
}

func (r *Runner) surroundings(ctx context.Context, t jobs.Task) (s surroundings, err error) {
	if s.ahead, err = r.store.Ahead(ctx, t); err != nil {
		return s, err
	}
	if s.workers, err = r.Workers(ctx); err != nil {
		return s, err
	}
	if s.gates, err = r.Gates(ctx); err != nil {
		return s, err
	}
	if t.State == jobs.Blocked && t.Lane != "" {
		if s.holder, err = r.store.LaneHolder(ctx, t.Lane); err != nil {
			return s, err
		}
	}
	if t.State == jobs.Pending {
		var f Figures
		f, err = r.Figures(ctx, t.Queue)
		s.run = f.RunP50
	}
	return s, err
}

// why is Why, from what was read.
func (s surroundings) why(t jobs.Task, now time.Time) string {
	workers := s.workers
	switch {
	case t.State.Finished():
		return ""
	case t.State == jobs.Running:
		return whereItRuns(t, workers, now)
	case t.RunAt.After(now) && t.State == jobs.Retrying:
		return fmt.Sprintf("waits for its next attempt at %s (backoff %s)", humanize.Clock(t.RunAt, now), humanize.Took(humanize.Rounded(t.RunAt.Sub(t.UpdatedAt))))
	case t.RunAt.After(now) && t.State == jobs.Scheduled:
		return "runs at " + humanize.Clock(t.RunAt, now)
	}
	if t.State == jobs.Blocked {
		return blockedBecause(t, s.holder, s.gates, now)
	}
	if pause, ok := s.gates.Pauses.Of(t.Queue); ok {
		return pausedBecause(t.Queue, pause, s.gates.Pauses, now)
	}
	var draining []string
	ready := slices.DeleteFunc(slices.Clone(workers), func(w WorkerInfo) bool {
		state := WorkerState(w, now)
		if state == WorkerDraining {
			draining = append(draining, w.Name)
		}
		return state != WorkerReady
	})
	if len(ready) == 0 && len(draining) > 0 {
		return "no worker runs (" + strings.Join(draining, ", ") + ": draining)"
	}
	if len(ready) == 0 {
		return "no worker runs"
	}
	serving := slices.DeleteFunc(ready, func(w WorkerInfo) bool { return !Serves(w, t.Queue) })
	if len(serving) == 0 {
		return "no worker serves queue " + t.Queue
	}
	able := slices.DeleteFunc(serving, func(w WorkerInfo) bool { return !slices.Contains(w.Jobs, t.Job) })
	if len(able) == 0 {
		return "no worker has job " + t.Job
	}
	if l := s.gates.limit(t); l != nil {
		return limitedBecause(l, now)
	}
	busy, slots := BusySlots(able)
	return fmt.Sprintf("behind %s, %d/%d slots busy", humanize.Plural(s.ahead, "task"), busy, slots) + s.estimate(busy, slots)
}

// estimate says how long it may take until a task starts for which no slot is free: if the tasks before it take as long as those of the
// last hour, and all slots are for its queue. Less than a minute says nothing that the number of tasks does not.
func (s surroundings) estimate(busy, slots int) string {
	if busy < slots || slots == 0 {
		return ""
	}
	wait := s.run * time.Duration(s.ahead+1) / time.Duration(slots)
	if wait < time.Minute {
		return ""
	}
	return ", about " + humanize.Age(wait)
}

// pausedBecause says since when a queue is paused, by whom and why.
func pausedBecause(queue string, pause Pause, pauses Pauses, now time.Time) string {
	text := fmt.Sprintf("queue paused %s ago by %s", humanize.Age(now.Sub(pause.At)), pause.By)
	if _, own := pauses[queue]; !own {
		text = "all queues " + strings.TrimPrefix(text, "queue ")
	}
	if pause.Reason != "" {
		text += ": " + pause.Reason
	}
	return text
}

// blockedBecause says which tasks a blocked task waits for, or who has its lane. holder has the task's lane; 0: nobody.
func blockedBecause(t jobs.Task, holder int64, g Gates, now time.Time) string {
	waits := slices.Concat(t.After, t.AfterAny)
	switch {
	case len(waits) > 1:
		return fmt.Sprintf("waits for task %d and %s more", waits[0], humanize.Count(int64(len(waits)-1)))
	case len(waits) == 1:
		return fmt.Sprintf("waits for task %d", waits[0])
	case holder != 0:
		return fmt.Sprintf("lane %s is held by task %d", t.Lane, holder)
	}
	if l := g.limit(t); l != nil {
		return limitedBecause(l, now)
	}
	return "lane " + t.Lane + " is free: a worker gives it to the next"
}

func limitedBecause(l *LimitStat, now time.Time) string {
	if l.Running > 0 && l.InUse >= l.Running {
		return fmt.Sprintf("limit %s: %d of %d running", l.Target, l.InUse, l.Running)
	}
	return fmt.Sprintf("limit %s: next start at %s", l.Target, humanize.Clock(l.NextAt, now))
}

func whereItRuns(t jobs.Task, workers []WorkerInfo, now time.Time) string {
	at := slices.IndexFunc(workers, func(w WorkerInfo) bool { return w.ID == t.WorkerID })
	gone := at < 0 || WorkerState(workers[at], now) == WorkerLost
	switch {
	case gone && t.LeaseExpiresAt.Before(now) && !slices.ContainsFunc(workers, func(w WorkerInfo) bool { return WorkerState(w, now) != WorkerLost }):
		return fmt.Sprintf("%s is gone, and no worker runs that could take over", t.Worker)
	case gone && t.LeaseExpiresAt.Before(now):
		return fmt.Sprintf("%s is gone; another worker will take over", t.Worker)
	}
	text := fmt.Sprintf("running on %s for %s", t.Worker, humanize.Took(now.Sub(t.StartedAt)))
	if !t.CancelRequestedAt.IsZero() {
		text += fmt.Sprintf(", asked to stop %s ago", humanize.Age(now.Sub(t.CancelRequestedAt)))
	}
	return text
}

// Serves says whether a worker takes tasks of a queue.
func Serves(w WorkerInfo, queue string) bool {
	return w.Queues == nil || slices.ContainsFunc(w.Queues, func(q QueueMax) bool { return q.Queue == queue })
}

// BusySlots sums up the slots of workers.
func BusySlots(workers []WorkerInfo) (busy, slots int) {
	for _, w := range workers {
		busy += len(w.Running)
		slots += w.Slots
	}
	return busy, slots
}
