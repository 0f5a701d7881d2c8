package engine

import (
	"cmp"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs/command"
)

// A cycle is one transaction that writes the outcomes of attempts and claims
// more tasks. While the transaction waits for the disk or the server, the slots
// of short tasks would be empty. So the worker prefetches tasks: it claims more
// tasks than it has free slots. These tasks wait in Engine.prefetched. When an
// attempt ends, its goroutine begins the next waiting task.
//
// Invariants:
//   - At most WorkOptions.Concurrency attempts run. Heartbeats renew the leases of
//     the waiting tasks like those of running ones. An attempt whose lease has
//     expired does not begin (attempt.tooLate).
//   - The worker prefetches only if the cycle writes the outcome of at least
//     one attempt for each slot, and if all these were functions that were
//     short. It then claims at most prefetchGrowth times as many tasks as have
//     ended, so the waiting tasks last for about two cycles. At most
//     prefetchMax tasks wait.
//   - A task waits for at most prefetchWait. Then it goes back to its queue,
//     and the worker prefetches nothing for prefetchPause.
//   - The waiting tasks of a queue begin in the order of priority and id. So a
//     new task of higher priority begins before them once the next cycle has
//     claimed it.
//   - The worker does not prefetch a task whose start depends on the tasks that
//     run then: a suspect, a task of a batch, or a task under a limit or a
//     pause. It does not prefetch a task that must not run twice either,
//     because that task would count as run if the worker died.
//
// Measurements: by prefetching, a worker empties a queue of functions that do
// nothing 10 times as fast with one slot, and twice as fast with ten slots
// (BenchmarkDrain of package runner). With a PostgreSQL server and 25 slots,
// the worker is 1.5 times as fast (bench/postgres).
const (
	prefetchMax    = 100                    // most tasks that wait for a slot
	prefetchBytes  = 1 << 20                // greatest total size of the arguments of the prefetched tasks; estimated from ended tasks
	prefetchGrowth = 2                      // greatest number of tasks to prefetch for each ended attempt
	prefetchShort  = 10 * time.Millisecond  // an attempt is short if it runs for at most this time
	prefetchWait   = 200 * time.Millisecond // longest time that a claimed task waits for a slot
	prefetchPause  = time.Second            // time without prefetching, after a task has waited for too long
)

// prefetch returns how many tasks a cycle may prefetch that writes the outcomes
// ends.
func (e *Engine) prefetch(ends []db.Finish, at time.Time) int {
	if !e.prefetches || len(ends) < e.o.Concurrency || at.Before(e.noPrefetchUntil) {
		return 0
	}

	size := 1
	for i := range ends {
		f := &ends[i]
		if f.Task.Job == command.Job || f.Release || f.Outcome.Duration > prefetchShort || taskspec.Suspect(f.Task) {
			return 0
		}
		size += len(f.Task.Args)
	}

	e.mu.Lock()
	defer e.mu.Unlock()

	if e.o.Queues != nil {
		return 0
	}
	return max(min(prefetchGrowth*len(ends), prefetchMax, prefetchBytes*len(ends)/size)-len(e.prefetched), 0)
}

// mayPrefetch reports whether the options allow the worker to prefetch.
func (o *Options) mayPrefetch() bool {
	for _, h := range o.Handlers {
		if h.BulkSize > 0 {
			return false
		}
	}
	return o.Only == 0 && o.WriteEvery == 0
}

// takePrefetched adds the claimed attempts to those that wait for a slot. Then
// it removes the first n waiting attempts and returns them, to begin now.
func (e *Engine) takePrefetched(claimed []*attempt, n int, at time.Time) []*attempt {
	e.mu.Lock()
	defer e.mu.Unlock()

	if len(e.prefetched) == 0 && len(claimed) <= n {
		return claimed
	}

	for _, a := range claimed {
		a.slotless, e.slotless = true, e.slotless+1
		e.queue(a)
	}

	first := slices.Clone(e.prefetched[:min(n, len(e.prefetched))])
	e.prefetched = e.prefetched[len(first):]
	for _, a := range first {
		a.slotless, e.slotless = false, e.slotless-1
		a.task.StartedAt = at
	}

	if e.release(func(a *attempt) bool { return a.task.MaxLosses == 0 }) {
		e.noPrefetchUntil = at.Add(prefetchPause)
	}

	return first
}

// passSlot gives the slot of an attempt that has ended to the first attempt
// that waits. It returns that attempt, which must begin now, or nil.
func (e *Engine) passSlot(a *attempt) *attempt {
	e.mu.Lock()
	defer e.mu.Unlock()

	if a.slotless || a.release || len(e.prefetched) == 0 {
		return nil
	}
	next := e.prefetched[0]
	e.prefetched = e.prefetched[1:]
	a.slotless, next.slotless = true, false
	next.task.StartedAt = now()
	return next
}

// receive adds an attempt that has ended to e.unwritten. It gives the slot of
// the attempt to a waiting task, if that has not happened yet.
func (e *Engine) receive(a *attempt) {
	e.limitComebacks(a)
	e.unwritten = append(e.unwritten, a)
	if a.batch != nil {
		e.leaveBatch(a)
	} else if next := e.passSlot(a); next != nil {
		next.begin()
	}
}

// releasePrefetched gives back the tasks that have waited for a slot for too
// long. If the worker ends, it gives back all of them.
func (e *Engine) releasePrefetched() {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := now()
	if e.release(func(a *attempt) bool { return e.ending() || at.Sub(a.task.StartedAt) >= prefetchWait }) {
		e.noPrefetchUntil = at.Add(prefetchPause)
	}
}

// release gives the waiting tasks for which give returns true back to their
// queues, with the next cycle. It reports whether there was one. The caller
// holds e.mu.
func (e *Engine) release(give func(*attempt) bool) bool {
	before := len(e.unwritten)
	e.prefetched = slices.DeleteFunc(e.prefetched, func(a *attempt) bool {
		if give(a) {
			e.unwritten = append(e.unwritten, a.notStarted())
			return true
		}
		return false
	})
	return len(e.unwritten) > before
}

// releaseAt returns when a task has waited for a slot for too long, or zero if
// none waits.
func (e *Engine) releaseAt() (first time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()

	for _, a := range e.prefetched {
		if at := a.task.StartedAt.Add(prefetchWait); first.IsZero() || at.Before(first) {
			first = at
		}
	}

	return first
}

// queue adds an attempt to those that wait. Claims take from the queues in
// turn, and each place stays with its queue: the attempt takes the place of the
// first task of its queue that it comes before, and the later ones move on by
// one. The caller holds e.mu.
func (e *Engine) queue(a *attempt) {
	at := len(e.prefetched)
	e.prefetched = append(e.prefetched, a)
	for i := at - 1; i >= 0; i-- { // from the end, because most new tasks are the last of their queue
		switch other := e.prefetched[i]; {
		case other.task.Queue != a.task.Queue:
		case other.beginsBefore(a):
			return
		default:
			e.prefetched[i], e.prefetched[at], at = a, other, i
		}
	}
}

// beginsBefore reports whether attempt a begins earlier than attempt b of the
// same queue.
func (a *attempt) beginsBefore(b *attempt) bool {
	return cmp.Or(cmp.Compare(b.task.Priority, a.task.Priority), cmp.Compare(a.task.ID, b.task.ID)) < 0
}
