package runner

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
)

// A wall clock that is years ahead makes every finished task old. So nothing is deleted for an hour after the wall clock has jumped
// forwards by more than a day, unless a person confirms that the clock is right, or it jumps back.
//
// A running worker notices a jump by comparing the wall clock with a clock that nobody can set and that goes on while the machine is
// suspended. A worker that starts compares the wall clock with the last sign of life of any worker: more than a day later the machine was
// off, or the clock is wrong, and nobody can tell which. The pause is in the database, so that it holds for every worker. A worker
// writes it before it writes anything else by the new time, because the last sign of life no longer tells of the jump after that.
const (
	jumpLeast = 24 * time.Hour // a smaller jump is none
	jumpPause = time.Hour      // without deletions after a jump
)

// resumeDeletion is the command by which a person confirms that the clock is right.
const resumeDeletion = "runner resume --deletion"

// DeletionPause names the pause of deletions in Pauses and Resume: workers delete no old tasks. It is not the name of a queue.
const DeletionPause = db.DeletionPause

// clock is what an engine knows of the clocks of its machine.
type clock struct {
	mu      sync.Mutex // held until a jump is in the database
	began   time.Time
	booted  time.Duration // supervisor.SinceBoot at began
	wall    time.Time     // of the last look
	steady  time.Duration // since began, at the last look
	pending *db.Pause     // a jump that is not yet in the database
	asOf    time.Time     // while deletions pause, tasks are deleted that were old at this time; zero: none
}

// start begins to compare the clocks.
func (c *clock) start(at time.Time) {
	c.began, c.booted, c.wall = at, supervisor.SinceBoot(), at.Round(0)
}

// jump returns how much further the wall clock went than the steady one since the last look.
func (c *clock) jump(wall time.Time, steady time.Duration) time.Duration {
	ahead := wall.Sub(c.wall) - (steady - c.steady)
	c.wall, c.steady = wall, steady
	return ahead
}

// startClock pauses deletions if no worker gave a sign of life for more than a day. It is called before this worker gives its first one.
func (e *engine) startClock(ctx context.Context, at time.Time) error {
	e.clock.start(at)
	seen, err := e.r.store.Seen(ctx)
	if err != nil || seen.IsZero() || at.Sub(seen) <= jumpLeast {
		return err
	}
	before, err := e.r.store.PauseOfDeletion(ctx)
	if err != nil {
		return err
	}
	if !before.At.IsZero() && at.Sub(before.At) >= jumpPause {
		e.clock.asOf = before.At // else nothing would ever be deleted where a worker runs for some minutes every few days
	}
	why := fmt.Sprintf("no worker ran from %s to %s, or the clock is wrong", stamp(seen), stamp(at))
	return e.pauseDeletion(ctx, db.Pause{At: at, By: e.info.Name, Reason: why})
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// watchClock pauses deletions if the wall clock has jumped since the last look.
func (e *engine) watchClock(ctx context.Context) {
	at := now()
	// In a test on fake time only the first of the two clocks moves. Elsewhere the second one is never behind it.
	e.compareClocks(ctx, at.Round(0), max(at.Sub(e.clock.began), supervisor.SinceBoot()-e.clock.booted))
}

func (e *engine) compareClocks(ctx context.Context, wall time.Time, steady time.Duration) {
	c := &e.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ahead := c.wall, c.jump(wall, steady); ahead > jumpLeast {
		c.asOf = time.Time{}
		c.pending = &db.Pause{At: wall, By: e.info.Name, Reason: fmt.Sprintf("the clock jumped from %s to %s", stamp(before), stamp(wall))}
	}
	if c.pending == nil {
		return
	}
	if err := e.pauseDeletion(ctx, *c.pending); err != nil {
		e.log.Warn("cannot pause deletions, will try again", "err", err)
		return
	}
	c.pending = nil
}

func (e *engine) pauseDeletion(ctx context.Context, p db.Pause) error {
	if err := e.r.store.PauseDeletion(ctx, p); err != nil {
		return err
	}
	e.log.Warn("no old tasks are deleted for an hour: "+p.Reason, "confirm", resumeDeletion)
	return nil
}

// deleteAsOf returns the time that decides which tasks are old, and whether that is the present. The zero time: nothing may be deleted.
// It ends a pause of deletions that is an hour old, or that a clock which was ahead has left.
func (e *engine) deleteAsOf(ctx context.Context, wall time.Time) (asOf time.Time, present bool) {
	e.clock.mu.Lock()
	defer e.clock.mu.Unlock()
	if e.clock.pending != nil {
		return time.Time{}, false
	}
	pause, err := e.r.store.PauseOfDeletion(ctx)
	passed := wall.Sub(pause.At)
	switch {
	case err != nil:
		e.log.Warn("cannot see whether deletions pause", "err", err)
		return time.Time{}, false
	case pause.At.IsZero():
		return wall, true
	case -jumpPause < passed && passed < jumpPause:
		return e.clock.asOf, false
	}
	if err := e.r.store.ResumeDeletion(ctx, pause.At); err != nil {
		e.log.Warn("cannot end the pause of deletions", "err", err)
		return time.Time{}, false
	}
	why := "an hour has passed"
	if passed < 0 {
		why = "the clock was set back"
	}
	e.log.Info("old tasks are deleted again: " + why)
	return wall, true
}
