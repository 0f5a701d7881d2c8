package db

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/jobs"
)

// All writes of a process pass here: one goroutine owns the write connection and folds what is waiting into one transaction.
//
// Why: a transaction costs 35 µs, or 350 µs with an fsync, before it does anything; a row costs 7 to 10. A hundred callers that
// share a commit make durability cheap, and no two goroutines of a process ever wait for each other inside SQLite.
//
// Invariants:
//   - A member of a group sees and leaves a consistent database; it runs on a context that cannot be cancelled, because ending
//     one statement of a transaction rolls all of it back in the driver, and what follows would then commit alone.
//   - A group with a FULL member is committed at FULL: every member of it is on the disk when it is answered.
//   - If a member fails, the group is rolled back and its members run one by one: so a member may run twice, must set what it
//     returns anew each time, and only its own error reaches it.
//   - Beats go first, so that no crowd of enqueues can starve a lease.
//
// Manners towards other processes: SQLite has no queue for its write lock, and its own back-off waits for seconds beside a
// process that commits back to back. So a writer tries again each millisecond, and one that has been writing without a break
// rests now and then (measured: p99 of another process's insert 2 s → 20 ms).
//
// What was tried: a Gosched before draining doubles the throughput of ten callers, since they meet in one transaction instead
// of two cohorts that take turns; a timer for the same purpose gains nothing.

// level is how far a commit goes before it is answered.
type level int

const (
	normal level = iota // survives the death of any process
	full                // survives a power cut
)

// answerTime limits how long a caller waits for its write. After it the write may still happen.
const answerTime = 10 * time.Second

const (
	foldMost    = 1000                  // members of a group
	yields      = 4                     // Gosched before draining
	restAfter   = 10 * time.Millisecond // of writing without a break
	restFor     = time.Millisecond
	breakLength = 500 * time.Microsecond // what counts as a break
)

type request struct {
	level level
	alone bool // a member of no group: what it reads can be read once only
	run   func(*tx) error
	done  chan error
}

// writer is the part of DB that owns the write connection.
type writer struct {
	db       *DB
	conn     *sqlx.Conn
	stmts    map[string]*sqlx.Stmt
	level    level
	requests chan *request
	beats    chan *request
	quit     chan struct{} // closed by stop
	gone     chan struct{} // closed when the loop has ended
	done     sync.WaitGroup
	starting sync.Once

	busySince time.Time // start of the present stretch of writing
	lastEnd   time.Time
}

func (w *writer) start(d *DB) {
	w.db = d
	w.level = full
	if d.options.Normal {
		w.level = normal
	}
	w.stmts = map[string]*sqlx.Stmt{}
	w.requests = make(chan *request, foldMost)
	w.beats = make(chan *request, 16)
	w.quit = make(chan struct{})
	w.gone = make(chan struct{})
}

func (w *writer) stop() {
	if w.quit == nil {
		return
	}
	close(w.quit)
	w.done.Wait()
	close(w.gone)
	for _, stmt := range w.stmts {
		stmt.Close()
	}
	if w.conn != nil {
		w.conn.Close()
	}
}

// update runs a write as a member of a group and waits until it is committed. It returns the member's own error, ErrBusy when
// other processes held the lock for too long, ErrClosed, or ErrUnknown when it was not answered in time; ctx ends
// the waiting before the write is handed over, and not the write.
func (w *writer) update(ctx context.Context, to level, run func(*tx) error) error {
	return w.submit(ctx, w.requests, &request{level: to, run: run})
}

// updateAlone is update for a write that must not run twice and may take long: it has a transaction of its own.
func (w *writer) updateAlone(ctx context.Context, to level, run func(*tx) error) error {
	return w.submit(ctx, w.requests, &request{level: to, run: run, alone: true})
}

// beat is update for heartbeats: they go first.
func (w *writer) beat(ctx context.Context, run func(*tx) error) error {
	return w.submit(ctx, w.beats, &request{level: normal, run: run})
}

func (w *writer) submit(ctx context.Context, queue chan *request, r *request) error {
	w.starting.Do(func() { w.done.Go(w.loop) })
	if w.db.options.Normal {
		r.level = normal
	}
	r.done = make(chan error, 1)
	select {
	case <-w.quit:
		return jobs.ErrClosed
	default:
	}
	select {
	case queue <- r:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.quit:
		return jobs.ErrClosed
	}
	if r.alone { // as long as it takes
		select {
		case err := <-r.done:
			return err
		case <-w.gone:
			return r.late()
		}
	}
	answer := time.NewTimer(answerTime + w.db.options.BusyTimeout)
	defer answer.Stop()
	select {
	case err := <-r.done:
		return err
	case <-w.gone:
		return r.late()
	case <-answer.C:
		return fmt.Errorf("%w: no answer from %s for %v", jobs.ErrUnknown, w.db.path, answerTime+w.db.options.BusyTimeout)
	}
}

// late is the answer to a request that may have been handed over after the loop had ended.
func (r *request) late() error {
	select {
	case err := <-r.done:
		return err
	default:
		return jobs.ErrClosed
	}
}

func (w *writer) loop() {
	group := make([]*request, 0, foldMost)
	for {
		group = group[:0]
		select { // beats first
		case r := <-w.beats:
			group = append(group, r)
		default:
			select {
			case r := <-w.beats:
				group = append(group, r)
			case r := <-w.requests:
				group = append(group, r)
			case <-w.quit:
				if group = w.drain(group); len(group) == 0 {
					return
				}
			}
		}
		for range yields {
			runtime.Gosched()
		}
		group = w.drain(group)
		w.rest()
		w.commit(group)
		w.lastEnd = time.Now()
	}
}

func (w *writer) drain(group []*request) []*request {
	for len(group) < foldMost {
		select {
		case r := <-w.beats:
			group = append(group, r)
		case r := <-w.requests:
			group = append(group, r)
		default:
			return group
		}
	}
	return group
}

// rest leaves the lock to others after a stretch of writing without a break.
func (w *writer) rest() {
	now := time.Now()
	switch {
	case now.Sub(w.lastEnd) > breakLength:
		w.busySince = now
	case now.Sub(w.busySince) > restAfter:
		time.Sleep(restFor)
		w.busySince = time.Now()
	}
}

// commit runs a group in one transaction and answers its members.
func (w *writer) commit(group []*request) {
	if i := slices.IndexFunc(group, func(r *request) bool { return r.alone }); i >= 0 && len(group) > 1 {
		single := group[i : i+1 : i+1]
		w.commit(slices.Concat(group[:i], group[i+1:]))
		w.commit(single)
		return
	}
	err := w.transaction(group)
	if failed, ok := err.(*memberError); ok && len(group) > 1 {
		for _, r := range group { // the others must not suffer for it
			err := w.transaction([]*request{r})
			if failed, ok := err.(*memberError); ok {
				err = failed.err
			}
			r.done <- err
		}
		return
	} else if ok {
		err = failed.err
	}
	for _, r := range group {
		r.done <- err
	}
}

// memberError is the error of one member of a group: the transaction was rolled back.
type memberError struct{ err error }

func (e *memberError) Error() string { return e.err.Error() }

func (w *writer) transaction(group []*request) error {
	ctx := context.Background()
	to := normal
	for _, r := range group {
		to = max(to, r.level)
	}
	if err := w.setLevel(ctx, to); err != nil {
		return explain(err, w.db.path)
	}
	t := &tx{w: w, ctx: ctx}
	if err := w.db.patiently(func() error { _, err := t.exec(begin); return err }); err != nil {
		return explain(err, w.db.path)
	}
	for _, r := range group {
		if err := r.run(t); err != nil {
			w.rollback(t)
			return &memberError{explain(err, w.db.path)}
		}
	}
	if _, err := t.exec(commit); err != nil {
		w.rollback(t)
		return explain(err, w.db.path)
	}
	return nil
}

const (
	begin    = `BEGIN IMMEDIATE`
	commit   = `COMMIT`
	rollback = `ROLLBACK`
)

// rollback ends a transaction that failed. The driver may have ended it already; then this fails, and that is fine.
func (w *writer) rollback(t *tx) { _, _ = t.exec(rollback) }

// setLevel sends the pragma as text: a prepared one acts once only, when it is prepared.
func (w *writer) setLevel(ctx context.Context, to level) error {
	if to == w.level {
		return nil
	}
	text := "PRAGMA synchronous = NORMAL"
	if to == full {
		text = "PRAGMA synchronous = FULL"
	}
	if _, err := w.conn.ExecContext(ctx, text); err != nil {
		return err
	}
	w.level = to
	return nil
}

// pauseBusy waits about a millisecond before the lock is tried again, jittered so that a crowd spreads.
func pauseBusy() { time.Sleep(time.Duration(500+rand.IntN(1000)) * time.Microsecond) }

// tx is a transaction of the writer. Its statements are prepared once per DB and live as long as it does.
type tx struct {
	w   *writer
	ctx context.Context
}

func (t *tx) stmt(text string) (*sqlx.Stmt, error) {
	if stmt := t.w.stmts[text]; stmt != nil {
		return stmt, nil
	}
	stmt, err := t.w.conn.PreparexContext(t.ctx, text)
	if err != nil {
		return nil, err
	}
	t.w.stmts[text] = stmt
	return stmt, nil
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(text string, args ...any) (int64, error) {
	stmt, err := t.stmt(text)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// insert runs an INSERT and returns the id of its row.
func (t *tx) insert(text string, args ...any) (int64, error) {
	stmt, err := t.stmt(text)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// get scans the one row of a query, or returns sql.ErrNoRows.
func (t *tx) get(dest any, text string, args ...any) error {
	stmt, err := t.stmt(text)
	if err != nil {
		return err
	}
	return stmt.GetContext(t.ctx, dest, args...)
}

// scan reads a few plain columns of the one row of a query.
func (t *tx) scan(text string, args []any, dest ...any) error {
	stmt, err := t.stmt(text)
	if err != nil {
		return err
	}
	return stmt.QueryRowxContext(t.ctx, args...).Scan(dest...)
}

// list scans all rows of a query: a query inside open rows of the same connection would hang.
func (t *tx) list(dest any, text string, args ...any) error {
	stmt, err := t.stmt(text)
	if err != nil {
		return err
	}
	return stmt.SelectContext(t.ctx, dest, args...)
}
