package runner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// AllQueues stands for all queues in place of the name of a queue. It includes
// queues that do not exist yet.
const AllQueues = ""

// DeletionPause stands for the pause of deletions in Pauses and Resume. During
// this pause workers delete no old tasks. DeletionPause is not the name of a
// queue.
const DeletionPause = db.DeletionPause

// Pause is a pause of a queue, of all queues, or of deletions.
type Pause = jobs.Pause

// Pauses are all pauses by queue. The key AllQueues has the pause of all
// queues, and the key DeletionPause has the pause of deletions.
type Pauses map[string]Pause

// Of returns the pause that keeps the tasks of a queue from starting: the
// queue's own pause, or the pause of all queues if that lasts longer or is the
// only one.
func (p Pauses) Of(queue string) (Pause, bool) {
	all, allPaused := p[AllQueues]
	if own, ok := p[queue]; ok && !db.EndsBefore(own, all) {
		return own, true
	}
	return all, allPaused
}

// Pauses returns all pauses.
func (r *Runner) Pauses(ctx context.Context) (Pauses, error) {
	return r.store.Pauses(ctx, now())
}

// Pause makes all workers stop starting tasks of queues, or of all queues with
// AllQueues, until Resume is called. The pause survives restarts. Running tasks
// continue. When Pause returns, no worker starts another task of the queues. A
// queue without tasks can be paused, too. If a queue is paused already, only
// the reason and the end change: Pause takes away an end that PauseFor has set.
// Pause returns jobs.ErrInvalid for an invalid name.
func (r *Runner) Pause(ctx context.Context, reason string, queues ...string) error {
	return r.pause(ctx, db.Pause{At: now(), Reason: reason}, queues)
}

// PauseFor does the same as Pause, but the pause ends by itself after d. Resume
// ends it earlier, and another call replaces its end. PauseFor also returns
// jobs.ErrInvalid if d isn't positive.
func (r *Runner) PauseFor(ctx context.Context, d time.Duration, reason string, queues ...string) error {
	if d <= 0 {
		return &jobs.FieldError{Field: "for", Msg: "must be positive"}
	}
	at := now()
	return r.pause(ctx, db.Pause{At: at, Reason: reason, Until: at.Add(d)}, queues)
}

func (r *Runner) pause(ctx context.Context, p db.Pause, queues []string) error {
	if err := validQueues(queues); err != nil {
		return err
	}
	p.By, p.Reason = db.CurrentUser(), taskspec.CutError(p.Reason)
	err := r.store.Pause(ctx, queues, p)
	r.store.Notify() // workers learn when the pause ends
	return err
}

// Resume ends the pauses of queues, and with AllQueues the pauses of all
// queues. It is no error if a queue is not paused. While all queues are paused,
// no task of a queue starts, even if the queue has no pause of its own. With
// DeletionPause, Resume confirms that the clock is right after it seemed to
// jump. Workers then delete old tasks again. Resume returns jobs.ErrInvalid for
// an invalid name.
func (r *Runner) Resume(ctx context.Context, queues ...string) error {
	named := slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return queue == DeletionPause })
	if err := validQueues(named); err != nil {
		return err
	}
	err := r.store.Resume(ctx, queues)
	r.store.Notify()
	return err
}

func validQueues(queues []string) error {
	for _, queue := range queues {
		if queue == AllQueues {
			continue
		}
		if err := taskspec.ValidQueue(queue); err != nil {
			return err
		}
	}
	return nil
}

// Queue is a queue with its counts.
type Queue = jobs.QueueStatus

// Queues returns the queues that have waiting or running tasks, or tasks that
// ended in the last 24 hours. They are sorted by name.
func (r *Runner) Queues(ctx context.Context) ([]Queue, error) {
	at := now()
	stats, err := r.store.Queues(ctx, at.Add(-24*time.Hour), at)
	if err != nil {
		return nil, err
	}

	queues := make([]Queue, 0, len(stats))
	for _, q := range stats {
		queues = append(queues, *q)
	}

	slices.SortFunc(queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues, nil
}
