package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/words"
	"example.com/runner/jobs"
)

// Why says in one sentence what an unfinished task waits for, or where it runs; it is empty for a finished one.
func (r *Runner) Why(ctx context.Context, t jobs.Task) (string, error) {
	if t.State.Finished() {
		return "", nil
	}
	ahead, err := r.Ahead(ctx, t)
	if err != nil {
		return "", err
	}
	workers, err := r.Workers(ctx)
	if err != nil {
		return "", err
	}
	g, err := r.Gates(ctx)
	if err != nil {
		return "", err
	}
	holder := int64(0)
	if t.State == jobs.Blocked && t.Lane != "" {
		if holder, err = r.LaneHolder(ctx, t.Lane); err != nil {
			return "", err
		}
	}
	return why(t, ahead, holder, g, workers, now()), nil
}

// why is Why, from what it has read: ahead is how many tasks of its queue start before it, holder who has its lane (0: nobody); workers
// are those that gave a sign of life lately.
func why(t jobs.Task, ahead int, holder int64, g Gates, workers []WorkerInfo, now time.Time) string {
	switch {
	case t.State.Finished():
		return ""
	case t.State == jobs.Running:
		return whereItRuns(t, workers, now)
	case t.RunAt.After(now) && t.State == jobs.Retrying:
		return fmt.Sprintf("waits for its next attempt at %s (backoff %s)", words.Clock(t.RunAt, now), words.Took(words.Rounded(t.RunAt.Sub(t.UpdatedAt))))
	case t.RunAt.After(now) && t.State == jobs.Scheduled:
		return "runs at " + words.Clock(t.RunAt, now)
	}
	if t.State == jobs.Blocked {
		return blockedBecause(t, holder, g, now)
	}
	if pause, ok := g.Pauses.Of(t.Queue); ok {
		return pausedBecause(t.Queue, pause, g.Pauses, now)
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
	if l := g.limit(t); l != nil {
		return limitedBecause(l, now)
	}
	busy, slots := BusySlots(able)
	return fmt.Sprintf("behind %s, %d/%d slots busy", words.Plural(ahead, "task"), busy, slots)
}

// pausedBecause says since when a queue is paused, by whom and why.
func pausedBecause(queue string, pause Pause, pauses Pauses, now time.Time) string {
	text := fmt.Sprintf("queue paused %s ago by %s", words.Age(now.Sub(pause.At)), pause.By)
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
		return fmt.Sprintf("waits for task %d and %s more", waits[0], words.Count(int64(len(waits)-1)))
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
	return fmt.Sprintf("limit %s: next start at %s", l.Target, words.Clock(l.NextAt, now))
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
	text := fmt.Sprintf("running on %s for %s", t.Worker, words.Took(now.Sub(t.StartedAt)))
	if !t.CancelRequestedAt.IsZero() {
		text += fmt.Sprintf(", asked to stop %s ago", words.Age(now.Sub(t.CancelRequestedAt)))
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
