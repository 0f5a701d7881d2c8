package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/jobs"
)

// All writes of a process pass here. The callers that are waiting are folded into one transaction: one of them, the leader, runs
// the writes of all on the one write connection, answers them, and hands the lead to one that has come meanwhile.
//
// Why: a transaction costs 35 µs, or 350 µs with an fsync, before it does anything; a row costs 7 to 10. A hundred callers that
// share a commit make durability cheap, and no two goroutines of a process ever wait for each other inside SQLite.
//
// Invariants:
//   - There is one leader at most; only it touches the connection.
//   - A member of a group sees and leaves a consistent database; it runs on a context that cannot be cancelled, because ending
//     one statement of a transaction rolls all of it back in the driver, and what follows would then commit alone.
//   - A group with a FULL member is committed at FULL: every member of it is on the disk when it is answered.
//   - If a member fails, the group is rolled back and its members run one by one: so a member may run twice, must set what it
//     returns anew each time, and only its own error reaches it.
//   - Beats go to the head of the queue, so that no crowd of enqueues can starve a lease.
//
// Manners towards other processes: SQLite has no queue for its write lock, and its own back-off waits for seconds beside a
// process that commits back to back. So a writer tries again each half millisecond, and one that has been writing without a break
// rests now and then while others have the file open (measured: p99 of another process's insert 2 s → 20 ms).
//
// What was tried: a goroutine that owns the connection costs two hand-overs a write, which is a third of the time of a lone
// caller. A Gosched before taking the group doubles the throughput of ten callers, since they meet in one transaction instead
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
	yields      = 4                     // Gosched before a group is taken
	restAfter   = 10 * time.Millisecond // of writing without a break
	restFor     = time.Millisecond
	breakLength = 500 * time.Microsecond // what counts as a break
)

type request struct {
	level level
	alone bool // a member of no group: what it reads can be read once only
	run   func(*tx) error
	done  chan error    // buffered
	lead  chan struct{} // buffered: it is this caller's turn to lead
}

// call runs the member. One that is alone calls code of its caller, which may panic or end its goroutine: that must be the caller's
// end, and not that of the leader, behind whom others wait. So it has a goroutine of its own.
func (r *request) call(t *tx) error {
	if !r.alone {
		return r.run(t)
	}
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if p := recover(); p != nil {
				err = &panicError{p}
			}
			done <- err
		}()
		err = r.run(t)
	}()
	return <-done
}

// answer waits for the end of a write that somebody leads.
func (r *request) answer() error { return raise(<-r.done) }

func raise(err error) error {
	if p, ok := err.(*panicError); ok {
		panic(p.value)
	}
	if err == errGoexit {
		runtime.Goexit()
	}
	return err
}

// errGoexit is on its way to a goroutine that is to end, as panicError is.
var errGoexit = errors.New("the goroutine ended")

// panicError is on its way to the goroutine that it belongs to.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }

// writer is the part of DB that owns the write connection.
type writer struct {
	db *DB

	mu      sync.Mutex
	waiting []*request
	leading bool
	closed  bool
	idle    sync.Cond // nobody leads

	// The rest belongs to the leader.
	conn      *sqlx.Conn
	stmts     map[string]*sqlx.Stmt
	level     level
	broken    bool      // the last write met damage: the connection is opened anew before the next one
	busySince time.Time // start of the present stretch of writing
	lastEnd   time.Time
}

func (w *writer) start(d *DB) {
	w.db = d
	w.stmts = map[string]*sqlx.Stmt{}
	w.idle.L = &w.mu
}

// stop refuses further writes, waits for those under way and closes the connection.
func (w *writer) stop() {
	if w.db == nil {
		return
	}
	w.mu.Lock()
	for w.closed = true; w.leading; {
		w.idle.Wait()
	}
	w.mu.Unlock()
	w.letGo()
}

// letGo closes the connection.
func (w *writer) letGo() {
	for _, stmt := range w.stmts {
		stmt.Close()
	}
	clear(w.stmts)
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// update runs a write as a member of a group and returns when it is committed. It returns the member's own error, ErrBusy when
// other processes held the lock for too long, ErrClosed, or ErrUnknown when it was not answered in time. Once it has begun, the
// end of ctx does not stop it.
func (w *writer) update(ctx context.Context, to level, run func(*tx) error) error {
	return w.submit(ctx, &request{level: to, run: run}, false)
}

// updateAlone is update for a write that must not run twice and may take long: it has a transaction of its own.
func (w *writer) updateAlone(ctx context.Context, to level, run func(*tx) error) error {
	return w.submit(ctx, &request{level: to, run: run, alone: true}, false)
}

// beat is update for heartbeats: they go first.
func (w *writer) beat(ctx context.Context, run func(*tx) error) error {
	return w.submit(ctx, &request{level: normal, run: run}, true)
}

func (w *writer) submit(ctx context.Context, r *request, first bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if w.db.options.Normal {
		r.level = normal
	}
	r.done, r.lead = make(chan error, 1), make(chan struct{}, 1)
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return jobs.ErrClosed
	}
	if first {
		w.waiting = slices.Insert(w.waiting, 0, r)
	} else {
		w.waiting = append(w.waiting, r)
	}
	if !w.leading {
		w.leading = true
		r.lead <- struct{}{}
	}
	w.mu.Unlock()

	patience := answerTime + w.db.options.BusyTimeout
	if r.alone {
		patience = time.Duration(math.MaxInt64) // as long as it takes
	}
	select {
	case <-r.lead:
		w.lead()
		return r.answer()
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-r.done:
		return raise(err)
	case <-r.lead:
		w.lead()
		return r.answer()
	case <-timer.C:
		go func() { // whoever hands the lead to us must find somebody
			select {
			case <-r.done:
			case <-r.lead:
				w.lead()
			}
		}()
		return fmt.Errorf("%w: no answer from %s for %v", jobs.ErrUnknown, w.db.path, patience)
	}
}

// lead commits one group, which holds the leader's own request, and hands the lead on.
func (w *writer) lead() {
	for range yields {
		runtime.Gosched()
	}
	w.mu.Lock()
	group := slices.Clone(w.waiting[:min(foldMost, len(w.waiting))])
	w.waiting = slices.Delete(w.waiting, 0, len(group))
	w.mu.Unlock()
	w.rest()
	w.commit(group)
	w.lastEnd = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 {
		w.waiting[0].lead <- struct{}{}
		return
	}
	w.leading = false
	w.idle.Broadcast()
}

// rest leaves the lock to other processes after a stretch of writing without a break.
func (w *writer) rest() {
	now := time.Now()
	switch {
	case now.Sub(w.lastEnd) > breakLength:
		w.busySince = now
	case now.Sub(w.busySince) > restAfter:
		if othersOpen(w.db.path + "-shm") {
			time.Sleep(restFor)
		}
		w.busySince = time.Now()
	}
}

// commit runs a group in one transaction and answers its members.
func (w *writer) commit(group []*request) {
	if i := slices.IndexFunc(group, func(r *request) bool { return r.alone }); i >= 0 && len(group) > 1 {
		w.commit(slices.Concat(group[:i], group[i+1:]))
		w.commit(group[i : i+1])
		return
	}
	err := w.transaction(group)
	failed, ok := err.(*memberError)
	if ok && len(group) > 1 {
		for _, r := range group { // the others must not suffer for it
			w.commit([]*request{r})
		}
		return
	}
	if ok {
		err = failed.err
	}
	for _, r := range group {
		r.done <- err
	}
}

// memberError is the error of one member of a group: the transaction was rolled back.
type memberError struct{ err error }

func (e *memberError) Error() string { return e.err.Error() }

// Unwrap lets the code of the driver be seen.
func (e *memberError) Unwrap() error { return e.err }

func (w *writer) transaction(group []*request) (err error) {
	ctx := context.Background()
	if w.broken {
		if err := w.reopen(ctx); err != nil {
			return err
		}
	}
	if err := w.db.Replaced(); err != nil {
		return err
	}
	defer func() { w.broken = isDamage(err) }()
	to := normal
	for _, r := range group {
		to = max(to, r.level)
	}
	if err := w.setLevel(ctx, to); err != nil {
		return explain(err, w.db.path)
	}
	t := &tx{w: w, ctx: ctx, path: w.db.path}
	if err := w.db.patiently(func() error { _, err := t.exec(begin); return err }); err != nil {
		return explain(err, w.db.path)
	}
	for _, r := range group {
		if err := r.call(t); err != nil {
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

// reopen opens the connection anew: what the system could not read or write once may be fine for a new descriptor.
func (w *writer) reopen(ctx context.Context) error {
	d := w.db
	if err := d.Replaced(); err != nil {
		return err
	}
	w.letGo()
	d.log.Store(nil) // it goes with the last connection, and comes with the next
	if err := d.write.Close(); err != nil {
		return explain(err, d.path)
	}
	have, _, err := d.connectWriter(ctx)
	if err != nil {
		return err
	}
	if have != SchemaVersion() {
		return &jobs.Problem{Kind: jobs.ErrReplaced, What: "database was replaced: " + d.path, Why: []string{"its schema has changed"}}
	}
	w.broken = false
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

// pauseBusy waits before the lock is tried again: for less than a busy writer rests, and jittered so that a crowd spreads. Who has
// waited for long is one of a crowd, which must leave the processor to whoever holds the lock: the pause grows to ten times that.
func pauseBusy(waited time.Duration) {
	pause := restFor*3/10 + rand.N(restFor*4/10)
	time.Sleep(pause * time.Duration(1+min(int(waited/(200*time.Millisecond)), 9)))
}

// tx is a transaction: of the writer, whose statements are prepared once per DB and live as long as it does, or of the caller's own.
type tx struct {
	w     *writer
	ctx   context.Context
	used  uses     // what of the order of tasks is in use; see end.go
	moved bool     // tasks that waited for others may start now
	outer *sqlx.Tx // the caller's; nil: the writer's
	names *names   // of the statements in the caller's, whose handle knows nothing of a prefix
	path  string   // of the database
	space room     // on its disk
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
	result, err := t.do(text, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// one runs a statement that changes one row, which this transaction has just read as it is.
func (t *tx) one(text string, args ...any) error {
	n, err := t.exec(text, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows changed, not one", n)
	}
	return err
}

func (t *tx) do(text string, args []any) (sql.Result, error) {
	if t.outer != nil {
		return t.outer.ExecContext(t.ctx, t.names.in(text), args...)
	}
	stmt, err := t.stmt(text)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(t.ctx, args...)
}

// insert runs an INSERT and returns the id of its row.
func (t *tx) insert(text string, args ...any) (int64, error) {
	result, err := t.do(text, args)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// scan reads a few plain columns of the one row of a query, or returns sql.ErrNoRows.
func (t *tx) scan(text string, args []any, dest ...any) error {
	if t.outer != nil {
		return t.outer.QueryRowxContext(t.ctx, t.names.in(text), args...).Scan(dest...)
	}
	stmt, err := t.stmt(text)
	if err != nil {
		return err
	}
	return stmt.QueryRowxContext(t.ctx, args...).Scan(dest...)
}

// list scans all rows of a query: a query inside open rows of the same connection would hang.
func (t *tx) list(dest any, text string, args ...any) error {
	if t.outer != nil {
		return t.outer.SelectContext(t.ctx, dest, t.names.in(text), args...)
	}
	stmt, err := t.stmt(text)
	if err != nil {
		return err
	}
	return stmt.SelectContext(t.ctx, dest, args...)
}
