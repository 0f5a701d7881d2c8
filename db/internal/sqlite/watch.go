package sqlite

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

// # Problem
//
// A worker that waits for tasks, and a program that waits for the end of a task, must learn of the commits of other processes. This must
// happen within a millisecond, without load while no process writes, and without delays for a busy database. SQLite sends no messages
// between processes.
//
// # Invariants
//
//   - After Watch has returned, every commit of another connection leads to a call of the function notify. A call may come without a
//     commit.
//   - An event only says that a process has written to the write-ahead log. The commit becomes visible after that, so the watch checks
//     several times after an event. It also checks once a second, in case an event was lost.
//   - The watch never opens the database file or the log, because closing them would drop the locks of this process.
//
// # Outline
//
// inotify reports writes to the log (system_linux.go). The watch then compares PRAGMA data_version on a connection of its own. A watch with
// an interval does not use inotify and only compares once per interval. There are two reasons: `runner work --until-empty` must end at
// once, without waiting for inotify to close. The cost of the web pages must not grow with the number of commits.
//
// # Alternatives
//
// A check every few milliseconds costs 3 % of a core while the database is idle. The module fsnotify would add a dependency and a
// goroutine for one watch on one directory. kqueue would have to open the log.

// dataVersion returns a number that changes when any other connection of any process has committed (measured: 7 µs).
const dataVersion = `PRAGMA data_version`

// Watch implements engine.Shared. The parameter "every" is the time between two checks. If it is not 0, the watch does not use inotify. If
// it is 0, the watch uses inotify, and the process can take up to 20 ms longer to end, because the kernel needs this time to close the
// inotify descriptor.
func (d *File) Watch(ctx context.Context, every time.Duration, notify func(wakeups bool)) {
	w := &watch{db: d, notify: func(bool) {}, every: every}
	events, stop := (<-chan struct{})(nil), func() {}
	if every == 0 {
		w.every, w.paceChanged = checkEvery, d.paceChanged
		events, stop = walEvents(d.path)
	}
	w.check() // this first check makes the watch ignore all earlier commits
	w.notify = notify
	d.watches.Go(func() {
		defer w.disconnect()
		defer stop()
		w.run(ctx, events, d.quit)
	})
}

// slowPace is the shortest time between two checks after the call WatchSlowly(true).
const slowPace = 20 * time.Millisecond

// WatchSlowly implements engine.Shared.
func (d *File) WatchSlowly(slowly bool) {
	if d.slow.Swap(slowly) && !slowly {
		select {
		case d.paceChanged <- struct{}{}:
		default:
		}
	}
}

type watch struct {
	db        *File
	conn      *sqlx.DB // connection that reads PRAGMA data_version; nil after an error
	notify    func(wakeups bool)
	checkedAt time.Time
	last      int64         // last value of PRAGMA data_version
	every     time.Duration // time between two checks if no event comes
	// WatchSlowly(false) sends a value on this channel, which ends the present pause of the watch. The channel is nil if Watch was called
	// with an interval.
	paceChanged chan struct{}
}

// eventPauses are the pauses before the checks after the first one, which follows
// an event at once. The event comes when a process writes to the log, and the
// commit becomes visible a little later. With an fsync on a busy disk, this delay
// is tens or hundreds of milliseconds.
var eventPauses = [...]time.Duration{250 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond,
	160 * time.Millisecond, 320 * time.Millisecond}

// foundPause is an index in eventPauses. After a check that has found a commit,
// the pauses continue at this index, or at a later one: that commit may be an
// earlier one.
const foundPause = 3

func (w *watch) run(ctx context.Context, events, quit <-chan struct{}) {
	for next := len(eventPauses); ; {
		pause := w.every
		if next < len(eventPauses) {
			pause = eventPauses[next]
			next++
		}
		event, ok := w.sleep(ctx, pause, events, quit)
		if event {
			next = 0
		}
		if rest := slowPace - time.Since(w.checkedAt); ok && rest > 0 && w.db.slow.Load() {
			_, ok = w.sleep(ctx, rest, nil, quit)
		}
		if !ok {
			return
		}
		if w.check() {
			next = max(next, foundPause)
		}
	}
}

// sleep ends early at an event, and when the pace changes. ok is false if the
// watch must end.
func (w *watch) sleep(ctx context.Context, pause time.Duration, events, quit <-chan struct{}) (event, ok bool) {
	select {
	case <-time.After(pause):
	case <-w.paceChanged:
	case <-events:
		return true, true
	case <-ctx.Done():
		return false, false
	case <-quit:
		return false, false
	}
	return false, true
}

// check calls notify if there was a commit since the last check, and reports
// whether it did. After an error there may have been one.
func (w *watch) check() bool {
	w.checkedAt = time.Now()
	var now int64
	err := error(nil)
	if w.conn == nil {
		err = w.connect()
	}
	if err == nil {
		err = w.conn.QueryRowx(dataVersion).Scan(&now)
	}
	if err != nil {
		w.disconnect() // the writer reopens the file after an error, too
	} else if now == w.last {
		return false
	}
	w.last = now
	w.notify(true)
	return true
}

// connect opens the watch's connection, but not on replaced files: SQLite would
// remove the log of an empty file.
func (w *watch) connect() (err error) {
	if err := w.db.Replaced(); err != nil {
		return err
	}
	w.conn, err = Connect(w.db.path, "rw", "busy_timeout(5000)", "query_only(1)")
	if err == nil {
		err = w.conn.Ping()
	}
	return err
}

func (w *watch) disconnect() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}
