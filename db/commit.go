package db

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
)

// Group commit: each process makes all its writes to a database through a
// writer, which makes one transaction for all callers that are waiting, the
// members of a group. One member is the leader. It runs the writes of all
// members on the one write connection, returns their results, and makes a
// caller that has arrived meanwhile the next leader.
//
// Why: an empty transaction costs 35 µs, or 350 µs with an fsync, and each row
// 7 to 10 µs. So durability is cheap when a hundred callers share a commit, and
// two goroutines of one process never wait for each other inside SQLite.
//
// Invariants:
//   - A writer has at most one leader, and only the leader uses the connection.
//   - The write of each member starts from a consistent database and leaves a
//     consistent one.
//   - It runs with a context that can't be cancelled. When a statement is
//     interrupted, the driver rolls back the whole transaction, and each later
//     statement would commit by itself.
//   - If one member asks for level full (see level), the commit of the whole
//     group has it: all writes are on the disk when the members return.
//   - If the write of a member fails, the group is rolled back and the writes
//     run one by one. So a write may run twice, and must reset its results each
//     time. A member gets only the error of its own write.
//   - Heartbeats go to the head of the queue, so that many enqueues can't delay
//     the renewal of a lease.
//
// Fairness between processes: SQLite has no queue for its write lock. With its
// busy handler a process can wait for seconds while another commits without a
// pause. So a writer that finds the lock taken waits in the kernel (awaitTurn
// in db/internal/sqlite), and one that has been writing without a break leaves
// the lock free for a moment while other processes have the file open (this
// lowers the p99 of an insert in another process from 2 s to 20 ms).
//
// Measurements: if one goroutine owned the connection, each write would switch
// between goroutines twice, a third of the time of a write by a single caller.
// Calls of Gosched before the leader takes the group double the throughput of
// ten callers, which then share one transaction instead of forming two groups
// that alternate. A timer gains nothing. A single caller doesn't call Gosched,
// since each call wakes another thread: four took a fifth of the time of an
// enqueue.

const (
	maxGroup    = 1000                   // members of a group
	yields      = 4                      // calls of Gosched before the leader takes a group, if there are several callers
	restAfter   = 10 * time.Millisecond  // after so long without a break, a writer leaves the lock to others
	restFor     = time.Millisecond       // for so long
	lookAgain   = time.Millisecond       // time between two checks whether files were replaced, or of disk space
	breakLength = 500 * time.Microsecond // a longer pause between writes counts as a break
)

// writer is the part of DB that owns the write connection.
type writer struct {
	db *DB

	mu      sync.Mutex
	waiting []*request
	leading bool
	closed  bool
	idle    sync.Cond // signalled when the writer has no leader

	// Only the leader uses the fields below.
	conn      *sqlx.Conn
	stmts     map[*statement]*sqlx.Stmt
	level     level
	broken    bool      // whether the last write found damage; then the connection is reopened before the next write
	busySince time.Time // start of the current series of writes without a break
	crowd     bool      // whether the last group had several members, or more requests arrived during its commit
	lastEnd   time.Time
	looked    time.Time // time at which lookAfter last found the files at their paths
}

func (w *writer) start(d *DB) {
	w.db = d
	w.open(w.conn)
	w.stmts = map[*statement]*sqlx.Stmt{}
	w.idle.L = &w.mu
}

// open sets the write connection. Its commits are durable unless Options.Normal
// is set.
func (w *writer) open(conn *sqlx.Conn) {
	w.conn, w.level = conn, full
	if w.db.options.Normal {
		w.level = normal
	}
}

// stop rejects further writes, waits for those in progress and closes the
// connection.
func (w *writer) stop() {
	if w.db == nil {
		return
	}
	w.mu.Lock()
	for w.closed = true; w.leading; {
		w.idle.Wait()
	}

	w.mu.Unlock()
	w.closeConn()
}

func (w *writer) stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// lead commits one group, with the request r of the leader, and makes the first
// waiting caller the next leader. If the context of the leader ends before the
// transaction begins, the other members wait for that one.
func (w *writer) lead(r *request) {
	if w.crowd {
		for range yields {
			runtime.Gosched()
		}
	}

	group := w.take(r)
	var rest []*request
	defer func() { // also if the code of a request that runs alone panics
		w.lastEnd = time.Now()
		w.mu.Lock()
		defer w.mu.Unlock()

		w.waiting = slices.Insert(w.waiting, 0, rest...)
		w.crowd = len(group) > 1 || len(w.waiting) > 0
		if len(w.waiting) > 0 {
			w.waiting[0].lead <- struct{}{}
			return
		}

		w.leading = false
		w.idle.Broadcast()
	}()

	w.rest()
	rest = w.commit(group, r)
}

// take removes the leader's group from the queue: its request r, and all others
// that need no transaction of their own. If r needs one, it's the whole group.
func (w *writer) take(r *request) []*request {
	w.mu.Lock()
	defer w.mu.Unlock()

	group := make([]*request, 0, min(maxGroup, len(w.waiting)))
	w.waiting = slices.DeleteFunc(w.waiting, func(one *request) bool {
		joins := one == r || !one.alone && !r.alone && len(group) < maxGroup
		if joins {
			group = append(group, one)
		}
		return joins
	})
	return group
}

// rest leaves the lock to other processes for a moment if this one has been
// writing for long without a break.
func (w *writer) rest() {
	now := time.Now()
	switch {
	case now.Sub(w.lastEnd) > breakLength:
		w.busySince = now
	case now.Sub(w.busySince) > restAfter:
		w.db.engine.Rest(restFor)
		w.busySince = time.Now()
	}
}

var errEnded = errors.New("a caller has given up")

// begin starts the transaction of a group and takes the write lock, shared if
// all requests are and the engine can. errEnded says that the context of a
// request ended before that.
func (w *writer) begin(t *tx, group []*request, leader *request) error {
	ended := func(r *request) bool { return r.ctx.Err() != nil }
	try := func() error {
		if ended(leader) || slices.ContainsFunc(group, ended) {
			return errEnded
		}
		_, err := t.exec(begin)
		return err
	}
	shared := !slices.ContainsFunc(group, func(r *request) bool { return !r.shared })
	waited, err := w.db.engine.Begin(w.conn, shared, try)
	if err == nil && waited {
		w.busySince = time.Now() // other processes had the lock, so a new series of writes begins here
	}

	return err
}

// commit runs a group in one transaction and returns the result to its members.
// It returns those without a result, if the context of the leader ended before
// the transaction began.
func (w *writer) commit(group []*request, leader *request) (rest []*request) {
	err := w.transaction(group, leader)
	if errors.Is(err, errEnded) {
		for _, r := range group {
			if r.ctx.Err() != nil {
				r.done <- context.Cause(r.ctx)
			} else {
				rest = append(rest, r)
			}
		}

		if len(rest) > 0 && leader.ctx.Err() == nil {
			return w.commit(rest, leader)
		}
		return rest
	}

	failed, ok := errors.AsType[*memberError](err)
	if ok && len(group) > 1 {
		for _, r := range group { // one by one, so that only the member that fails gets its error
			rest = append(rest, w.commit([]*request{r}, leader)...)
		}
		return rest
	}
	if ok {
		err = failed.err
	}

	for _, r := range group {
		r.done <- err
	}

	return nil
}

// lookBefore returns an error if the files of the database were replaced. The
// writer already has the write lock: they may have been replaced while it
// waited.
func (w *writer) lookBefore() error {
	if !w.mustLook() {
		return nil
	}
	return w.db.Replaced()
}

func (w *writer) mustLook() bool { return time.Since(w.looked) >= lookAgain }

// lookAfter returns an error if the files were replaced, because other
// processes then don't see the commit.
func (w *writer) lookAfter(changed bool) error {
	err := w.db.engine.Committed(changed)
	if err == nil {
		w.looked = time.Now()
	}
	return err
}

// checkSpace returns an error of kind ErrFull if the disk has no space for
// another task. It looks only once in a millisecond, because a check takes 1
// µs.
func (t *tx) checkSpace() error {
	if isRecent(&t.db.roomAt) {
		return nil
	}

	err := t.db.engine.Space()
	if err == nil {
		t.db.roomAt.Store(new(time.Now()))
	}
	return err
}

// isRecent reports whether a check succeeded less than a millisecond ago.
func isRecent(check *atomic.Pointer[time.Time]) bool {
	at := check.Load()
	return at != nil && time.Since(*at) < lookAgain
}

// recordSize notes that the file was within Options.MaxBytes just now.
func (d *DB) recordSize() { d.measuredAt.Store(new(time.Now())) }
