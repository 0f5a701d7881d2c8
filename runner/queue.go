package runner

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// AllQueues stands for the whole database where the name of a queue is asked for: queues that come later, too.
const AllQueues = db.AllQueues

// Pause says since when, by whom and why no task of a queue is started.
type Pause = db.Pause

// Pauses are all pauses by the names of their queues, and that of deletions by DeletionPause.
type Pauses map[string]Pause

// Of returns why no task of a queue is started: its own pause, else that of the database.
func (p Pauses) Of(queue string) (Pause, bool) {
	if own, ok := p[queue]; ok {
		return own, true
	}
	all, ok := p[AllQueues]
	return all, ok
}

// All says whether the whole database is paused.
func (p Pauses) All() bool {
	_, ok := p[AllQueues]
	return ok
}

// Pauses returns which queues are paused.
func (r *Runner) Pauses(ctx context.Context) (Pauses, error) { return r.store.Pauses(ctx) }

// Pause makes all workers stop starting tasks of queues (or AllQueues), also after a restart, until Resume. What runs goes on. When
// Pause returns, no worker starts another task of them. A queue without any task is fine.
func (r *Runner) Pause(ctx context.Context, reason string, queues ...string) error {
	if err := validQueues(queues); err != nil {
		return err
	}
	return r.store.Pause(ctx, queues, db.Pause{At: now(), By: r.user(), Reason: jobs.CutError(reason)})
}

// Resume ends the pauses of queues. AllQueues ends every pause of queues. A queue that is not paused stays so. A queue without a pause of its own
// can still be held by the pause of all queues. DeletionPause confirms that the clock is right after it seems to have jumped: workers delete old
// tasks again.
func (r *Runner) Resume(ctx context.Context, queues ...string) error {
	if slices.Contains(queues, DeletionPause) {
		if err := r.store.ResumeDeletion(ctx, time.Time{}); err != nil || len(queues) == 1 {
			return err
		}
		queues = slices.DeleteFunc(slices.Clone(queues), func(queue string) bool { return queue == DeletionPause })
	}
	if err := validQueues(queues); err != nil {
		return err
	}
	err := r.store.Resume(ctx, queues)
	r.notifier.Notify()
	return err
}

func validQueues(queues []string) error {
	for _, queue := range queues {
		if queue == AllQueues {
			continue
		}
		if err := jobs.ValidQueue(queue); err != nil {
			return err
		}
	}
	return nil
}
