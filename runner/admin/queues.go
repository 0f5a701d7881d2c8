package admin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

type (
	// QueueStatus is a queue with its counts of unfinished tasks, of tasks that
	// ended in the last 24 hours, and with its pause.
	QueueStatus = db.QueueStatus
	// Pause is a pause of a queue, of all queues, or of deletions: since At,
	// by a user for a reason, and up to Until (zero: until it is resumed).
	Pause = db.Pause
)

// AllQueues stands for all queues in place of the name of a queue. It includes
// queues that do not exist yet.
const AllQueues = db.AllQueues

// DeletionPause is the key of the pause of deletions in a PauseMap. During this
// pause workers delete no old tasks: see ResumeDeletion.
const DeletionPause = db.DeletionPause

// Queues returns the queues that have waiting or running tasks, or tasks that
// ended in the last 24 hours. They are sorted by name.
func Queues(ctx context.Context, r *runner.Runner) ([]QueueStatus, error) {
	at := now()
	stats, err := db.Of(r).Queues(ctx, at.Add(-24*time.Hour), at)
	if err != nil {
		return nil, err
	}

	queues := make([]QueueStatus, 0, len(stats))
	for _, q := range stats {
		queues = append(queues, *q)
	}

	slices.SortFunc(queues, func(a, b QueueStatus) int { return cmp.Compare(a.Name, b.Name) })
	return queues, nil
}

// PauseMap has all pauses by queue. The key AllQueues has the pause of all
// queues, and the key DeletionPause has the pause of deletions.
type PauseMap map[string]Pause

// Of returns the pause that keeps the tasks of a queue from starting: the
// queue's own pause, or the pause of all queues if that lasts longer or is the
// only one.
func (p PauseMap) Of(queue string) (Pause, bool) {
	all, allPaused := p[AllQueues]
	if own, ok := p[queue]; ok && !db.EndsBefore(own, all) {
		return own, true
	}
	return all, allPaused
}

// Pauses returns all pauses.
func Pauses(ctx context.Context, r *runner.Runner) (PauseMap, error) {
	return db.Of(r).Pauses(ctx, now())
}

// PauseOptions are the options of PauseQueues.
type PauseOptions struct {
	Reason string        // text for people
	For    time.Duration // after which time the pause ends by itself; 0 means that it lasts until ResumeQueues
}

// PauseQueues makes all workers stop starting tasks of queues, or of all queues
// with AllQueues, until ResumeQueues or for a time. The pause survives
// restarts. Running tasks continue. When PauseQueues returns, no worker starts
// another task of the queues. A queue without tasks can be paused, too. If a
// queue is paused already, only the reason and the end change. A reason above 8
// KiB is cut. The error is jobs.ErrInvalid for an invalid name or a negative
// time.
func PauseQueues(ctx context.Context, r *runner.Runner, queues []string, o PauseOptions) error {
	if err := validQueues(queues); err != nil {
		return err
	}

	p := Pause{At: now(), By: db.CurrentUser(), Reason: taskspec.CutError(o.Reason)}
	switch {
	case o.For < 0:
		return &jobs.FieldError{Field: "for", Msg: "must not be negative"}
	case o.For > 0:
		p.Until = p.At.Add(o.For)
	}

	err := db.Of(r).Pause(ctx, queues, p)
	db.Of(r).Notify() // workers learn when the pause ends
	return err
}

// ResumeQueues ends the pauses of queues. With AllQueues it ends the pause of
// all queues and those of single ones. It is no error if a queue is not paused.
// While all queues are paused, no task of a queue starts, even if the queue has
// no pause of its own. The error is jobs.ErrInvalid for an invalid name.
func ResumeQueues(ctx context.Context, r *runner.Runner, queues ...string) error {
	if err := validQueues(queues); err != nil {
		return err
	}
	err := db.Of(r).Resume(ctx, queues)
	db.Of(r).Notify()
	return err
}

// ResumeDeletion confirms that the clock is right after it seemed to jump:
// workers then delete old tasks again. It is no error if they do already.
func ResumeDeletion(ctx context.Context, r *runner.Runner) error {
	err := db.Of(r).Resume(ctx, []string{DeletionPause})
	db.Of(r).Notify()
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
