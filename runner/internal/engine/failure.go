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
//   - Busy or full: the worker keeps the attempts that have ended and writes
//     them again until it succeeds. If heartbeats fail, too, the worker stops
//     its attempts before their leases end.
//   - Damaged, not writable or not readable: package db opens the file again,
//     and the worker tries once more. If that fails, too, the worker gives up.
//     It kills its attempts and writes nothing more. Other workers take over
//     the tasks when they find its lock free or its leases expired.
//   - Replaced or removed: the worker gives up at once.

// unusable reports whether err says that the database cannot be used. If the
// file was replaced, the worker ends at once. If the database cannot be used
// for another reason, the worker ends after two errors in a row.
func unusable(err error) bool {
	for _, kind := range []error{jobs.ErrReplaced, jobs.ErrCorrupt, jobs.ErrPermission, jobs.ErrSchema} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// giveUp ends the worker without another write, and kills the attempts.
func (e *Engine) giveUp(err error) {
	e.fail(err)
	e.stopAll(jobs.ErrShutdown, true)
}

const (
	diskCheckEvery = time.Second // interval at which a worker checks a full disk for free space
	maxWALSize     = 64 << 20    // size of the write-ahead log, in bytes, above which watchWAL warns that a process reads for too long
)

// noteDisk records whether a cycle that had a free slot found the disk full,
// and claimed nothing. err is nil if it had free space.
func (e *Engine) noteDisk(err error) {
	switch {
	case err != nil && !e.diskFull:
		e.log.Error("the disk is full: no task starts until there is free space", "err", err)
	case err == nil && e.diskFull:
		e.look()
		e.log.Info("the disk has free space again")
	}
	e.diskFull = err != nil
}

// watchWAL warns once when the write-ahead log has grown, which happens when a
// process reads for a long time. It also logs when the write-ahead log has
// shrunk again.
func (e *Engine) watchWAL() {
	_, size := e.store.Size()
	if grown := size > maxWALSize; grown == e.walGrown {
		return
	}

	e.walGrown = !e.walGrown
	if !e.walGrown {
		e.log.Info("the write-ahead log has shrunk")
		return
	}

	var names []string
	for _, p := range e.store.Readers() {
		names = append(names, fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}

	e.log.Warn("the write-ahead log grows because a process has been reading for long", "bytes", size, "pids", strings.Join(names, ", "))
}
