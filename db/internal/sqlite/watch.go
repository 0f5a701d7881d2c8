package sqlite

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

// dataVersion changes on a connection when any other connection, of this process or another, has committed (measured: 7 µs).
const dataVersion = `PRAGMA data_version`

// sweep is how often the watch looks without having been told: the net under lost notices.
const sweep = time.Second

// briefSweep is how often a brief watch looks. Nothing tells it of a write: the end of an inotify descriptor takes the kernel up to
// 20 ms, and the process ends no sooner.
const briefSweep = 20 * time.Millisecond

// Watch calls told when another connection has committed; several commits may be one call, and one for this process's own commits is
// possible. news says that it may be something for workers: on a server it is known of some commits that they only end tasks, or claim
// them, and of a file that the writer of this DB has made them. told must not wait. A brief watch costs more, and tells up to 20 ms
// later, but is begun and ended at once. The watching ends with ctx.
func (d *File) Watch(ctx context.Context, brief bool, told func(news bool)) error {
	w := &watch{db: d, told: told, every: sweep}
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
	if brief {
		w.every = briefSweep
	} else {
		events, stop = walEvents(d.path)
	}
	d.watches.Go(func() {
		defer close()
		defer stop()
		w.run(ctx, events, d.quit)
	})
	return nil
}

// slowEvery is the least time between two looks at the slow pace.
const slowEvery = 20 * time.Millisecond

// WatchSlowly sets the pace of the watch: with true it looks every 20 ms at most, else as soon as it can.
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
	conn   *sqlx.Conn // for the pragma; nil: the counter of commits is read instead
	told   func(news bool)
	looked time.Time
	last   int64         // the counter, or what the pragma said
	others uint32        // the commits of other connections, by the counter
	every  time.Duration // the time between two looks without an event
}

// again are the pauses before the looks after an event: it comes when the log is written, and its commit is visible a little later,
// or with an fsync a good deal: on a busy disk that takes tens of milliseconds, or hundreds.
var again = [...]time.Duration{0, 250 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond,
	160 * time.Millisecond, 320 * time.Millisecond}

// seen is where the looks go on once a commit was seen.
const seen = 4

func (w *watch) run(ctx context.Context, events <-chan struct{}, quit <-chan struct{}) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	w.changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-quit:
			return
		case <-ticker.C:
			w.changed()
		case <-w.db.hurry:
			w.changed()
		case <-events:
			if !w.await(ctx, events, quit) {
				return
			}
		}
	}
}

// await looks for the commit that an event has told of. There may be none, since events come of checkpoints and rollbacks, too; and the
// first one that is seen may be an earlier one, so that it looks on, only less often. A new event begins anew. It returns false when the
// watching is to end.
func (w *watch) await(ctx context.Context, events, quit <-chan struct{}) bool {
	for i := 0; i < len(again); i++ {
		if rest := slowEvery - time.Since(w.looked); rest > 0 && w.db.slowly.Load() {
			select {
			case <-time.After(rest):
			case <-w.db.hurry:
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
			case <-w.db.hurry:
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

// changed looks once, and tells if there was a commit since the last look.
func (w *watch) changed() bool {
	w.looked = time.Now()
	var now int64
	news := true
	if w.conn == nil {
		all, others, ok := w.db.commits.read()
		if !ok { // the connection of the writer is opened anew, or could not be
			w.told(true)
			return true
		}
		now, news = int64(all), others != w.others
		w.others = others
	} else if err := w.conn.QueryRowxContext(context.Background(), dataVersion).Scan(&now); err != nil {
		return false // whoever writes next tells of the error; a watch has nobody to tell
	}
	if now == w.last && (!news || w.conn != nil) {
		return false
	}
	w.last = now
	w.told(news)
	return true
}
