package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// A worker treats an error of the database by its kind:
//
//   - Busy or full: the worker keeps the attempts that have ended and writes them again until it succeeds. If heartbeats fail, too, it
//     stops its attempts while their leases still hold.
//   - Damaged, not writable or not readable: package db opens the file again, and the worker tries once more. Then it gives up. It kills
//     its attempts and writes nothing more; other workers take over the tasks once the lease or the lock allows that.
//   - Replaced or removed: the worker gives up at once.

// unusable reports whether err ends the work: at once if the file was replaced, or else if it comes twice in a row.
func unusable(err error) bool {
	for _, kind := range []error{jobs.ErrReplaced, jobs.ErrCorrupt, jobs.ErrPermission, jobs.ErrSchema} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// giveUp ends the work without another write. It kills the attempts.
func (e *Engine) giveUp(err error) {
	e.fail(err)
	e.stopAll(jobs.ErrShutdown, true)
}

const (
	diskCheckEvery = time.Second // between two checks whether a full disk has room
	maxLogSize     = 64 << 20    // bytes of the write-ahead log above which a process has been reading for too long
)

// noteDisk records whether a cycle at a time could claim. wanted is false if the cycle had nothing to claim for. err is why the cycle
// could not claim; nil if the disk has room.
func (e *Engine) noteDisk(wanted bool, err error, at time.Time) {
	switch {
	case !wanted:
	case err != nil && e.diskFull == nil:
		e.diskFull = err
		e.log.Error("the disk is full: no task starts until it has room", "err", err)
	case err == nil && e.diskFull != nil:
		e.diskFull = nil
		e.scan, e.claimMore = true, true
		e.log.Info("the disk has room again")
	}
	e.diskCheckAt = at.Add(diskCheckEvery)
}

// watchLog warns once when the write-ahead log has grown because a process reads for long, and logs when the log has shrunk again.
func (e *Engine) watchLog() {
	_, size := e.store.Size()
	if grown := size > maxLogSize; grown == e.logGrown {
		return
	}
	e.logGrown = !e.logGrown
	if !e.logGrown {
		e.log.Info("the write-ahead log has shrunk")
		return
	}
	var names []string
	for _, p := range e.store.Readers() {
		names = append(names, fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}
	e.log.Warn("the write-ahead log grows because a process has been reading for long", "bytes", size, "pids", strings.Join(names, ", "))
}
