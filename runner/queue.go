package runner

import (
	"context"
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

// Resume ends pauses; with AllQueues every pause there is. A queue that is not paused stays so; one that has a pause of its own no
// more may still be held by that of the database.
func (r *Runner) Resume(ctx context.Context, queues ...string) error {
	if err := validQueues(queues); err != nil {
		return err
	}
	err := r.store.Resume(ctx, queues)
	r.wake.tell()
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

// ResumeDeletion confirms that the clock is right after it seems to have jumped: workers delete old tasks again. It changes nothing when
// they do.
func (r *Runner) ResumeDeletion(ctx context.Context) error {
	return r.store.ResumeDeletion(ctx, time.Time{})
}
