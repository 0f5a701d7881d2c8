package sqlite

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

// # Problem
//
// A worker that waits for tasks, and a program that waits for the end of a
// task, must learn of the commits of other processes: within a millisecond,
// without load while nobody writes, and without delays for a busy database.
// SQLite sends no messages between processes.
//
// # Invariants
//
//   - After Watch has returned, every commit of another connection leads to a
//     call of notify. A call may come without a commit.
//   - An event only says that a process has written to the WAL. The commit
//     becomes visible after that, so the watch checks several times after an
//     event. It also checks regularly, in case an event was lost: once a second
//     until the first event has shown that this filesystem has events, then
//     every five seconds.
//   - The watch never opens the database file or the WAL, because closing them
//     would drop the locks of this process.
//
// # Outline
//
// inotify reports writes to the WAL (system_linux.go). The watch then compares
// PRAGMA data_version on a connection of its own. A watch with an interval
// doesn't use inotify and only compares once per interval, for two reasons:
// `runner work --until-empty` must end at once, without waiting for inotify to
// close, and the cost of the web pages must not grow with the number of
// commits.
//
// # Alternatives
//
// A check every few milliseconds costs 3 % of a core while the database is
// idle. The module fsnotify would add a dependency and a goroutine for one
// watch on one directory. kqueue would have to open the WAL.

// dataVersion changes when any other connection of any process has committed
// (measured: 7 µs).
const dataVersion = `PRAGMA data_version`

// Watch implements engine.Shared. A watch with inotify (every is 0) keeps the
// process from ending for up to 20 ms, the kernel's time to close the
// descriptor.
func (d *File) Watch(ctx context.Context, every time.Duration, notify func(wakeups bool)) {
	w := &watch{db: d, notify: func(bool) {}, every: every}
	events, stop := (<-chan struct{})(nil), func() {}
	if every == 0 {
		w.every, w.paceChanged = checkEvery, d.paceChanged
		events, stop = walEvents(d.path)
	}

	w.check() // so that the watch ignores all earlier commits
	w.notify = notify

	d.watches.Go(func() {
		defer w.disconnect()
		defer stop()
		w.run(ctx, events, d.quit)
	})
}

// slowPace is the shortest time between two checks after WatchSlowly(true).
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
	db          *File
	conn        *sqlx.DB // reads dataVersion; nil after an error
	notify      func(wakeups bool)
	checkedAt   time.Time
	last        int64         // dataVersion at the last check
	every       time.Duration // between two checks if no event comes
	paceChanged chan struct{} // from WatchSlowly(false): ends the present pause; nil if Watch got an interval
}

// The event comes when a process writes to the WAL, and its commit becomes
// visible a little later: after an fsync on a busy disk, hundreds of
// milliseconds. So the time since the event doubles from one check to the next,
// until it reaches the regular interval. Only the pauses count as time: a busy
// computer delays the check as much as the commit.
const (
	sureEvery  = 5 * time.Second        // regular interval after the first event
	eventPause = 250 * time.Microsecond // before the second check; the first one follows the event at once
	foundPause = time.Millisecond       // after a check that has found a commit, which may be an earlier one
)

func (w *watch) run(ctx context.Context, events, quit <-chan struct{}) {
	waited := w.every          // since the last event
	var shortest time.Duration // pause
	for {
		pause := w.every
		if waited < w.every {
			pause = min(max(waited, shortest), w.every)
		}

		event, ok := w.sleep(ctx, pause, events, quit)
		waited += min(pause, time.Since(w.checkedAt)) // less than the pause if paceChanged has ended it
		if event {
			waited, shortest, w.every = 0, eventPause, sureEvery
		}
		if rest := slowPace - time.Since(w.checkedAt); ok && rest > 0 && w.db.slow.Load() {
			_, ok = w.sleep(ctx, rest, nil, quit)
		}
		if !ok {
			return
		}
		if w.check() {
			shortest = foundPause
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
	var err error
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

// connect makes the watch's connection, which opens with the first query, but
// not on replaced files: SQLite would remove the log of an empty file. It never
// parses the schema, because dataVersion doesn't need it.
func (w *watch) connect() (err error) {
	if err := w.db.Replaced(); err != nil {
		return err
	}
	w.conn, err = Connect(w.db.path, "rw", "busy_timeout(5000)", "query_only(1)")
	return err
}

func (w *watch) disconnect() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}
