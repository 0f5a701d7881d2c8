package db

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// request is a write of one caller, who waits for its result. The leader of a
// group runs the writes of several callers in one transaction; see commit.go.
type request struct {
	ctx    context.Context // if it ends before the write has begun, the caller gives up
	level  level
	alone  bool // whether the caller runs it in a transaction of its own, because run must not be called twice
	shared bool // on a server, groups of shared requests hold the write lock together
	adds   bool // whether run only passes tasks to the inserter, which adds those of several requests together
	run    func(*tx) error
	single func(*tx) error // run as a single statement without a transaction; may be nil
	done   chan error      // result of the write; buffered
	lead   chan struct{}   // receives a value when the caller becomes the next leader; buffered
}

// level says which failures a write survives once it has returned.
type level int

const (
	normal level = iota // survives the death of any process
	full                // survives a power failure; with Options.Flash, only if the power fails some time after the write
	synced              // survives a power failure, even with Options.Flash
)

// answerTime limits how long a caller waits for its write. One that has begun
// may still be made after that.
const answerTime = 10 * time.Second

// update runs a write as a member of a group, and returns when it's committed.
// Its error is that of the member, or ErrBusy if the write didn't begin in
// time, ErrClosed after Close, ErrUnknown if it began but didn't return in
// time, or the cause of ctx if ctx ended before it began. Once it has begun,
// the end of ctx doesn't stop it.
func (w *writer) update(ctx context.Context, to level, run func(*tx) error) error {
	return w.submit(ctx, &request{level: to, run: run}, false)
}

// updateAlone is update for a write that must not run twice and may take long.
// It has a transaction of its own.
func (w *writer) updateAlone(ctx context.Context, to level, run func(*tx) error) error {
	return w.submit(ctx, &request{level: to, run: run, alone: true}, false)
}

// beat is update for heartbeats, which go to the head of the queue.
func (w *writer) beat(ctx context.Context, run func(*tx) error) error {
	return w.submit(ctx, &request{level: normal, run: run}, true)
}

func (w *writer) submit(ctx context.Context, r *request, first bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	switch {
	case w.db.options.Normal, w.db.options.Flash > 0 && r.level < synced && !w.db.traits.OutlivedByClient:
		r.level = normal
	// After a crash of a server its clients still run and rely on their writes.
	// Only a heartbeat may be lost, because the next one repeats it.
	case w.db.traits.OutlivedByClient && !first:
		r.level = full
	}

	r.level = min(r.level, full)
	r.ctx, r.done, r.lead = ctx, make(chan error, 1), make(chan struct{}, 1)
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

	return w.await(ctx, r)
}

// await waits until a leader has run the request, or becomes the leader itself.
func (w *writer) await(ctx context.Context, r *request) error {
	patience := answerTime + w.db.options.BusyTimeout
	if r.alone {
		patience = time.Duration(math.MaxInt64)
	}

	select {
	case <-r.lead:
		w.lead(r)
		return <-r.done
	default:
	}

	timer := time.NewTimer(patience)
	defer timer.Stop()

	ended := ctx.Done()
	for {
		select {
		case err := <-r.done:
			return err
		case <-r.lead:
			w.lead(r)
			return <-r.done
		case <-ended:
			if w.withdraw(r) {
				return context.Cause(ctx)
			}
			ended = nil // a leader has taken the request, or this caller is the next one; the leader checks ctx from now on
			continue
		case <-timer.C:
		}

		if w.withdraw(r) {
			return &jobs.Error{Kind: jobs.ErrBusy, Code: errcode.LockTimeout, Subject: w.db.path, What: "database is busy: " + w.db.path,
				Why: []string{fmt.Sprintf("earlier writes of this program have taken %v", patience),
					"nothing was written; it is safe to try again"}}
		}

		go func() { // this caller may still become the leader, and must then commit the writes of the other callers
			select {
			case <-r.done:
			case <-r.lead:
				w.lead(r)
			}
		}()
		return fmt.Errorf("%w: no answer from %s for %v", jobs.ErrUnknown, w.db.path, patience)
	}
}

// withdraw removes a request that waits for a leader. It returns false if a
// leader has taken it, or if its caller is the next leader.
func (w *writer) withdraw(r *request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	i := slices.Index(w.waiting, r)
	if i < 0 || len(r.lead) > 0 {
		return false
	}
	w.waiting = slices.Delete(w.waiting, i, i+1)
	return true
}

// call runs the request. The code of a caller that runs alone may panic or end
// its goroutine; then call rolls the transaction back.
func (r *request) call(w *writer, t *tx) error {
	returned := false
	defer func() {
		if !returned {
			w.rollback(t)
		}
	}()

	err := r.run(t)
	returned = true
	return err
}
