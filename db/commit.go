package db

import (
	"context"
	"errors"
	"fmt"
	"math"
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
// Fairness between processes: SQLite has no queue for its write lock, and its own back-off waits for seconds beside a process that commits
// back to back. So writers wait in a queue (lockqueue.go), and one that has been writing without a break leaves the lock to the
// first in the queue. Beside programs that do not use the queue, a writer tries again each half millisecond, and rests now and then
// while others have the file open (measured: p99 of another process's insert 2 s → 20 ms).
//
// What was tried: a goroutine that owns the connection costs two hand-overs a write, which is a third of the time of a lone
// caller. A Gosched before taking the group doubles the throughput of ten callers, since they meet in one transaction instead
// of two cohorts that take turns; a timer for the same purpose gains nothing. A lone caller does not call Gosched, since
// each call wakes another thread. Four calls took a fifth of the time of an enqueue.

// level is how far a commit goes before it is answered.
type level int

const (
	normal level = iota // survives the death of any process
	full                // survives a power cut
)

// answerTime limits how long a caller waits for its write. After it the write may still happen.
const answerTime = 10 * time.Second

const (
	foldMost  = 1000                  // members of a group
	yields    = 4                     // Gosched before a group is taken, if there are several callers
	restAfter = 10 * time.Millisecond // of writing without a break
	restFor   = time.Millisecond
	// after a look at the files, or at the room on the disk, a write looks at them again before it writes
	lookAgain   = time.Millisecond
	breakLength = 500 * time.Microsecond // what counts as a break
	singleAfter = 2 * time.Millisecond   // a write after such a break does not wait for the end of another process's stretch
)

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
	stmts     map[*statement]*sqlx.Stmt
	level     level
	broken    bool      // the last write met damage: the connection is opened anew before the next one
	busySince time.Time // start of the present stretch of writing
	crowd     bool      // the last group had several members, or more requests arrived during its commit
	lone      bool      // the present write is the first one after a break
	single    bool      // … and that was long enough that no other may follow soon
	lastEnd   time.Time
	looked    time.Time // when lookAfter last found the files in their places
	space     diskSpace // what the last transaction knew of the disk
	spaceAt   time.Time // since when
}

func (w *writer) start(d *DB) {
	w.db = d
	w.open(w.conn)
	w.stmts = map[*statement]*sqlx.Stmt{}
	w.idle.L = &w.mu
}

// open sets the connection, whose commits go to the disk unless the options say otherwise.
func (w *writer) open(conn *sqlx.Conn) {
	w.conn, w.level = conn, full
	if w.db.options.Normal {
		w.level = normal
	}
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
	w.closeConn()
}

// closeConn closes the connection. With the last connection SQLite lets the shared memory go, so nobody may use that any more.
func (w *writer) closeConn() {
	w.db.engine.Disconnecting()
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
	switch {
	case w.db.options.Normal:
		r.level = normal
	case w.db.traits.OutlivedByClient && !first: // clients outlive a server crash, so only heartbeats may commit asynchronously
		r.level = full
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
		return repanic(err)
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
	if w.crowd {
		for range yields {
			runtime.Gosched()
		}
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
	w.crowd = len(group) > 1 || len(w.waiting) > 0
	if len(w.waiting) > 0 {
		w.waiting[0].lead <- struct{}{}
		return
	}
	w.db.engine.Leave(w.lone, breakLength)
	w.leading = false
	w.idle.Broadcast()
}

// rest leaves the lock to other processes after a stretch of writing without a break.
func (w *writer) rest() {
	now := time.Now()
	w.lone, w.single = now.Sub(w.lastEnd) > breakLength, now.Sub(w.lastEnd) > singleAfter
	switch {
	case w.lone:
		w.busySince = now
	case now.Sub(w.busySince) > restAfter || w.db.engine.Awaited():
		w.db.engine.Rest(restFor)
		w.busySince = time.Now()
	}
}

// begin starts a transaction that has the write lock, or shares it where the engine can do that.
func (w *writer) begin(t *tx, shared bool) error {
	waited, err := w.db.engine.Begin(w.conn, shared, w.single, func() error {
		_, err := t.exec(begin)
		return err
	})
	if err == nil && waited {
		w.busySince = time.Now() // the stretch of writing begins here
	}
	return err
}

// commit runs a group in one transaction and answers its members.
func (w *writer) commit(group []*request) {
	if i := slices.IndexFunc(group, func(r *request) bool { return r.alone }); i >= 0 && len(group) > 1 {
		w.commit(slices.Concat(group[:i], group[i+1:]))
		w.commit(group[i : i+1])
		return
	}
	err := w.transaction(group)
	failed, ok := errors.AsType[*memberError](err)
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

// lookBefore returns an error when the files of the database were replaced, before anything is written. It is called with the write lock,
// for which the writer may have waited.
func (w *writer) lookBefore() error {
	if !w.looks() {
		return nil
	}
	return w.db.Replaced()
}

// looks says whether a look at the files is due before something is written. Commits that follow each other closely need none in between.
func (w *writer) looks() bool { return time.Since(w.looked) >= lookAgain }

// lookAfter returns an error when others do not see what was committed.
func (w *writer) lookAfter() error {
	err := w.db.engine.Committed()
	if err == nil {
		w.looked = time.Now()
	}
	return err
}

// knownRoom is what a transaction that follows another one closely knows of the disk.
func (w *writer) knownRoom() diskSpace {
	if w.space.err == nil && time.Since(w.spaceAt) < lookAgain {
		return w.space
	}
	w.spaceAt = time.Now()
	return diskSpace{}
}
