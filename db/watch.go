package db

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

// dataVersion changes on a connection when any other connection, of this process or another, has committed (measured: 7 µs).
const dataVersion = `PRAGMA data_version`

// sweep is how often the watch looks without having been told: the net under lost notices.
const sweep = time.Second

// Watch calls told when another connection has committed; several commits may be one call, and one for this process's own commits is
// possible. news says that it may be something for workers: on a server it is known of some commits that they only end tasks, or claim
// them. told must not wait. The watching ends with ctx.
func (d *DB) Watch(ctx context.Context, told func(news bool)) error {
	if d.server != nil {
		d.listen(ctx, told)
		return nil
	}
	pool, err := connect(d.path, "rw", 1, "busy_timeout(5000)", "query_only(1)")
	if err != nil {
		return err
	}
	conn, err := pool.Connx(ctx)
	if err != nil {
		pool.Close()
		return explain(err, d.path)
	}
	events, stop := walEvents(d.path)
	w := &watch{conn: conn, told: told}
	d.watches.Go(func() {
		defer pool.Close()
		defer conn.Close()
		defer stop()
		w.run(ctx, events, d.quit)
	})
	return nil
}

type watch struct {
	conn *sqlx.Conn
	told func(news bool)
	last int64
}

// again are the pauses before the looks after an event: it comes when the log is written, and its commit is visible a little later,
// or with an fsync a good deal: on a busy disk that takes tens of milliseconds, or hundreds.
var again = [...]time.Duration{0, 250 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond,
	160 * time.Millisecond, 320 * time.Millisecond}

// seen is where the looks go on once a commit was seen.
const seen = 4

func (w *watch) run(ctx context.Context, events <-chan struct{}, quit <-chan struct{}) {
	ticker := time.NewTicker(sweep)
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
		if again[i] > 0 {
			select {
			case <-time.After(again[i]):
			case <-events:
				i = 0
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
	var now int64
	// An error is told by whoever writes next; a watch has nobody to tell it.
	if err := w.conn.QueryRowxContext(context.Background(), dataVersion).Scan(&now); err != nil || now == w.last {
		return false
	}
	w.last = now
	w.told(true)
	return true
}
