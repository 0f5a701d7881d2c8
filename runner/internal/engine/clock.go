package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
)

// If a wall clock is years ahead by mistake, every finished task looks old and
// would be deleted. So workers pause deletions for an hour after the wall clock
// has jumped forwards by more than a day. The pause ends early if a person
// confirms that the clock is right, or if the clock jumps back.
//
// A running worker detects a jump with a second clock, which nobody can set and
// which continues while the machine is suspended. A worker that starts compares
// the wall clock with the last heartbeat of any worker. If that heartbeat is
// more than a day old, either the machine was off or the clock is wrong. No
// program can tell these cases apart.
//
// The pause is in the database, so that it holds for all workers. A worker
// writes the pause before it writes any other time of the changed clock.
// Otherwise its next heartbeat would hide the jump from workers that start
// later.
const (
	minJump   = 24 * time.Hour // jumps up to this length are ignored
	jumpPause = time.Hour      // length of the pause of deletions after a jump
)

// clock compares the wall clock of the machine with a clock that nobody can
// set.
type clock struct {
	mu      sync.Mutex // held from a comparison of the clocks until the resulting pause, if any, is stored
	began   time.Time
	booted  time.Duration // supervisor.SinceBoot at the time began
	ahead   time.Duration // by how much more the wall clock had advanced since began at the last comparison
	pending *db.Pause     // pause that is not yet in the database; nil if there is none
	asOf    time.Time     // during a pause, only tasks that were already old at this time are deleted; zero to delete no task
}

// startClock pauses deletions if no worker sent a heartbeat for more than a
// day. Call it before this worker sends its first heartbeat.
func (e *Engine) startClock(ctx context.Context, at time.Time) error {
	e.clock.began, e.clock.booted = at, supervisor.SinceBoot()
	seen, err := e.store.LastHeartbeat(ctx)
	if err != nil || seen.IsZero() || at.Sub(seen) <= minJump {
		return err
	}

	pauses, err := e.store.Pauses(ctx, time.Time{}) // also those that have ended
	if err != nil {
		return err
	}
	if before := pauses[db.DeletionPause]; !before.At.IsZero() && at.Sub(before.At) >= jumpPause {
		// A worker that runs only for some minutes every few days pauses
		// deletions at each start. So that it deletes any tasks at all, it may
		// delete those that were already old when the previous pause began.
		e.clock.asOf = before.At
	}

	why := fmt.Sprintf("no worker ran from %s to %s, or the clock is wrong", stamp(seen), stamp(at))
	return e.pauseDeletion(ctx, db.Pause{At: at, By: e.info.Name, Reason: why})
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// watchClock pauses deletions if the wall clock has jumped since the last
// comparison.
func (e *Engine) watchClock(ctx context.Context) {
	at := now()
	// In production the second argument of max is always the larger one. In a
	// test on fake time SinceBoot does not advance, and the first argument is
	// the larger one. So max returns the elapsed time in both cases.
	e.compareClocks(ctx, at.Round(0), max(at.Sub(e.clock.began), supervisor.SinceBoot()-e.clock.booted))
}

// compareClocks pauses deletions if the wall clock has jumped since the last
// call. The other clock, which nobody can set, has advanced by steady since the
// start.
func (e *Engine) compareClocks(ctx context.Context, wall time.Time, steady time.Duration) {
	c := &e.clock
	c.mu.Lock()
	defer c.mu.Unlock()

	ahead := wall.Sub(c.began.Round(0)) - steady
	jump := ahead - c.ahead
	if c.ahead = ahead; jump > minJump {
		c.asOf = time.Time{}
		c.pending = &db.Pause{At: wall, By: e.info.Name,
			Reason: fmt.Sprintf("the clock jumped from %s to %s", stamp(wall.Add(-jump)), stamp(wall))}
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

func (e *Engine) pauseDeletion(ctx context.Context, p db.Pause) error {
	p.Until = p.At.Add(jumpPause)
	if err := e.store.Pause(ctx, []string{db.DeletionPause}, p); err != nil {
		return err
	}
	e.log.Warn("workers delete no old tasks for an hour: " + p.Reason + "; if the clock is right, resume deletion")
	return nil
}

// deleteAsOf returns the time that decides which tasks are old, and whether it
// is the present time. The time is zero if nothing may be deleted. deleteAsOf
// ends a pause that begins more than an hour in the future.
func (e *Engine) deleteAsOf(ctx context.Context, wall time.Time) (asOf time.Time, present bool) {
	e.clock.mu.Lock()
	defer e.clock.mu.Unlock()

	if e.clock.pending != nil {
		return time.Time{}, false
	}

	pauses, err := e.store.Pauses(ctx, wall)
	if err != nil {
		e.log.Warn("cannot read the pause of deletions", "err", err)
		return time.Time{}, false
	}

	pause, paused := pauses[db.DeletionPause]
	switch {
	case !paused:
		return wall, true
	case pause.At.Sub(wall) <= jumpPause:
		return e.clock.asOf, false
	}

	// The clock that wrote the pause was ahead.
	if err := e.store.Resume(ctx, []string{db.DeletionPause}); err != nil {
		e.log.Warn("cannot end the pause of deletions", "err", err)
		return time.Time{}, false
	}

	return wall, true
}
