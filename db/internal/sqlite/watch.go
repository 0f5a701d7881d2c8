package sqlite

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

// dataVersion returns a number that changes when any other connection, of this process or another, has committed (measured: 7 µs).
const dataVersion = `PRAGMA data_version`

// sweep is how often the watch looks for commits without an event, in case an event was lost.
const sweep = time.Second

// Watch calls told when another connection has committed. One call may stand for several commits, and a commit of this process may
// cause a call. news is false only if the writer of this DB has made all of these commits. told must not block. Watch runs in the
// background until ctx ends.
//
// If every is 0, the watch looks as soon as it can, with inotify. Closing such a descriptor takes the kernel up to 20 ms, and the
// process cannot end before. Otherwise the watch looks at the pace every, without inotify.
func (d *File) Watch(ctx context.Context, every time.Duration, told func(news bool)) error {
	w := &watch{db: d, told: func(bool) {}, every: every}
	close := func() {}
	if _, _, ok := d.commits.read(); !ok {
		pool, err := Connect(d.path, "rw", "busy_timeout(5000)", "query_only(1)")
		if err != nil {
			return err
		}
		if w.conn, err = pool.Connx(ctx); err != nil {
			pool.Close()
			return d.Explain(err)
		}
		close = func() { w.conn.Close(); pool.Close() }
	}
	events, stop := (<-chan struct{})(nil), func() {}
	if every == 0 {
		w.every, w.hurry = sweep, d.hurry
		events, stop = walEvents(d.path)
	}
	w.changed() // later commits cause a call
	w.told = told
	d.watches.Go(func() {
		defer close()
		defer stop()
		w.run(ctx, events, d.quit)
	})
	return nil
}

// slowEvery is the shortest time between two looks at the slow pace.
const slowEvery = 20 * time.Millisecond

// WatchSlowly sets the pace of the watch: with true it looks for commits at most every 20 ms, else as soon as it can.
func (d *File) WatchSlowly(slowly bool) {
	if d.slowly.Swap(slowly) && !slowly {
		select {
		case d.hurry <- struct{}{}:
		default:
		}
	}
}

type watch struct {
	db     *File
	conn   *sqlx.Conn // connection for the pragma; nil if the watch reads the counter of commits instead
	told   func(news bool)
	looked time.Time
	last   int64         // last value of the counter or of the pragma
	others uint32        // number of commits of other connections, if there is a counter
	every  time.Duration // time between two looks without an event
	hurry  chan struct{} // ends a pause of the slow pace; nil if the pace does not change
}

// again are the pauses before the looks after an event. The event comes when the log is written, and the commit becomes visible a
// little later. With an fsync on a busy disk that takes tens or hundreds of milliseconds.
var again = [...]time.Duration{0, 250 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond,
	160 * time.Millisecond, 320 * time.Millisecond}

// seen is the index in again at which the looks continue after one that has found a commit.
const seen = 4

func (w *watch) run(ctx context.Context, events <-chan struct{}, quit <-chan struct{}) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-quit:
			return
		case <-ticker.C:
			w.changed()
		case <-w.hurry:
			w.changed()
		case <-events:
			if !w.await(ctx, events, quit) {
				return
			}
		}
	}
}

// await looks for the commit that caused an event. There may be none, since checkpoints and rollbacks cause events too. The first
// commit that await finds may be an earlier one, so await continues to look, but less often. A new event starts the sequence of pauses
// again. await returns false if the watch must end.
func (w *watch) await(ctx context.Context, events, quit <-chan struct{}) bool {
	for i := 0; i < len(again); i++ {
		if rest := slowEvery - time.Since(w.looked); rest > 0 && w.db.slowly.Load() {
			select {
			case <-time.After(rest):
			case <-w.hurry:
			case <-ctx.Done():
				return false
			case <-quit:
				return false
			}
		}
		if again[i] > 0 {
			select {
			case <-time.After(again[i]):
			case <-events:
				i = 0
			case <-w.hurry:
			case <-ctx.Done():
				return false
			case <-quit:
				return false
			}
		}
		if w.changed() {
			i = max(i, seen-1)
		}
	}
	return true
}

// changed looks once, and calls told if there was a commit since the last look.
func (w *watch) changed() bool {
	w.looked = time.Now()
	var now int64
	news := true
	if w.conn == nil {
		all, others, ok := w.db.commits.read()
		if !ok { // the connection of the writer is being opened again, or could not be opened
			w.told(true)
			return true
		}
		now, news = int64(all), others != w.others
		w.others = others
	} else if err := w.conn.QueryRowxContext(context.Background(), dataVersion).Scan(&now); err != nil {
		return false // the next write reports the error; a watch cannot report it
	}
	if now == w.last && (!news || w.conn != nil) {
		return false
	}
	w.last = now
	w.told(news)
	return true
}
