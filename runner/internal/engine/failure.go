package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// The kind of a database error decides how a worker continues:
//
//   - Busy or full: the worker keeps the attempts that have ended and writes them again until it succeeds. If heartbeats fail, too, the
//     worker stops its attempts before their leases end.
//   - Damaged, not writable or not readable: package db opens the file again, and the worker tries once more. If that fails, too, the
//     worker gives up. It kills its attempts and writes nothing more. Other workers take over the tasks when they find its lock free or its
//     leases expired.
//   - Replaced or removed: the worker gives up at once.

// unusable reports whether err is of a kind that ends the work. A replaced file ends it at once, and another such error ends it if it comes
// twice in a row.
func unusable(err error) bool {
	for _, kind := range []error{jobs.ErrReplaced, jobs.ErrCorrupt, jobs.ErrPermission, jobs.ErrSchema} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// giveUp ends the work without another write, and kills the attempts.
func (e *Engine) giveUp(err error) {
	e.fail(err)
	e.stopAll(jobs.ErrShutdown, true)
}

const (
	diskCheckEvery = time.Second // time between two checks whether a full disk has free space again
	maxLogSize     = 64 << 20    // size in bytes above which a write-ahead log is too long, because some process reads for long
)

// noteDisk records whether a cycle found the disk full. The parameter wanted is false if the cycle had no free slot, and noteDisk then
// changes nothing else. The parameter err is the error of the full disk; it is nil if the disk has free space.
func (e *Engine) noteDisk(wanted bool, err error, at time.Time) {
	switch {
	case !wanted:
	case err != nil && e.diskFull == nil:
		e.diskFull = err
		e.log.Error("the disk is full: no task starts until there is free space", "err", err)
	case err == nil && e.diskFull != nil:
		e.diskFull = nil
		e.scan, e.claimMore = true, true
		e.log.Info("the disk has free space again")
	}
	e.diskCheckAt = at.Add(diskCheckEvery)
}

// watchLog warns once when the write-ahead log has grown, which happens when a process reads for a long time. It also logs when the
// write-ahead log has shrunk again.
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
