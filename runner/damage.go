package runner

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// What a worker does when the file, or what it lies on, lets it down.
//
// Busy or full: it keeps what has ended, tries again until it succeeds, and stops its attempts while their leases still stand. Damaged,
// not writable or not to be read: db opens the file anew, it tries once more, and then gives up: its attempts are killed, their tasks
// are others' once their lease or the lock says so, and nothing more is written. Replaced or removed: it gives up at once.

// unusable says whether err, twice in a row or of a file that was replaced, ends the work.
func unusable(err error) bool {
	for _, kind := range []error{jobs.ErrReplaced, jobs.ErrCorrupt, jobs.ErrPermission, jobs.ErrSchema} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// giveUp ends the work without another write: its attempts are killed.
func (e *engine) giveUp(err error) {
	e.fail(err)
	e.stopAll(jobs.ErrShutdown, true)
}

const (
	roomPause = time.Second // until a worker looks again whether the disk has room
	logMost   = 64 << 20    // bytes of the write-ahead log above which somebody has been reading for too long
)

// noteRoom takes note of what a turn at a time has found when it wanted to claim: err is why it could not; nil: the disk has room.
func (e *engine) noteRoom(wanted bool, err error, at time.Time) {
	switch {
	case !wanted:
	case err != nil && e.noRoom == nil:
		e.noRoom = err
		e.log.Error("nothing is started until the disk has room", "err", err)
	case err == nil && e.noRoom != nil:
		e.noRoom = nil
		e.look, e.more = true, true
		e.log.Info("the disk has room again")
	}
	e.roomAt = at.Add(roomPause)
}

// watchLog warns when the write-ahead log grows because somebody reads for long, and once more when that is over.
func (e *engine) watchLog() {
	_, size := e.r.store.Size()
	if grown := size > logMost; grown == e.logGrown {
		return
	}
	e.logGrown = !e.logGrown
	if !e.logGrown {
		e.log.Info("the write-ahead log has shrunk")
		return
	}
	var names []string
	for _, p := range e.r.store.Readers() {
		names = append(names, fmt.Sprintf("%d (%s)", p.PID, p.Name))
	}
	e.log.Warn("the write-ahead log grows: somebody reads for long", "bytes", size, "pids", strings.Join(names, ", "))
}
