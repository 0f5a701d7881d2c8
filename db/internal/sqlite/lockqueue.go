package sqlite

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// lockQueue lets processes that wait for the write lock sleep in a queue of the kernel (a futex). SQLite has no such queue: without it each
// of them tries again every half millisecond, and the one that tries at the right moment gets the lock.
//
// The queue is a hint. SQLite's own lock decides who writes, and every sleep has a short limit. So a program that does not use the queue,
// such as the sqlite3 shell, works as before; and a process that is killed or stopped, with the lock or as the next one in the
// queue, delays the others by one such limit in addition to the time for which it has SQLite's lock.
//
// The queue belongs to a word in the shared memory of the database. A process that gets the write lock sets the word to a new odd
// number. At the end of its stretch of writing, which may be many transactions, the process adds one and wakes the first that
// sleeps.
//
// A process that writes now and then does not wait for the end of a stretch: it sleeps on a word of its own, and the holder lets it
// write after the present transaction.
type lockQueue struct {
	mu    sync.Mutex
	word  *atomic.Uint32 // nil: there is no queue
	quick *atomic.Uint32 // not 0: processes with a single write wait
	mine  uint32         // the odd number that this process has set; 0: its stretch is over
	timer *time.Timer    // ends the stretch when no write follows
}

// queueLongest limits a sleep in the queue.
const queueLongest = 20 * time.Millisecond

// open sets the words of the queue; nil: there is none.
func (q *lockQueue) open(word, quick *atomic.Uint32) {
	q.leave()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.word, q.quick = word, quick
}

// enter records that this process has got the write lock.
func (q *lockQueue) enter() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.word == nil {
		return
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	if now := q.word.Load(); q.mine == 0 || now != q.mine {
		q.mine = (now + 1) | 1
		q.word.Store(q.mine)
	}
}

// leave ends the stretch of this process, and wakes those with a single write, or the first in the queue. It returns false if nobody waits.
func (q *lockQueue) leave() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	mine := q.mine
	if mine == 0 {
		return false
	}
	q.mine = 0
	if q.timer != nil {
		q.timer.Stop()
	}
	if !q.word.CompareAndSwap(mine, mine+1) {
		return false // another process has the lock already, and will wake the others
	}
	return q.quick.Swap(0) != 0 && wake(q.quick, math.MaxInt32) || wake(q.word, 1)
}

// isAwaited returns whether a process with a single write waits for the lock that this process has.
func (q *lockQueue) isAwaited() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mine != 0 && q.quick.Load() != 0
}

// leaveAfter ends the stretch of this process if no write follows within the pause.
func (q *lockQueue) leaveAfter(pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.mine == 0:
	case q.timer == nil:
		q.timer = time.AfterFunc(pause, func() { q.leave() })
	default:
		q.timer.Reset(pause)
	}
}

// wait sleeps until the process that has the write lock leaves, or for a limited time; single: this process has a single write. It returns
// false at once when no other process of the queue has the lock.
func (q *lockQueue) wait(longest time.Duration, single bool) bool {
	q.mu.Lock()
	word, quick, mine := q.word, q.quick, q.mine
	q.mu.Unlock()
	if word == nil {
		return false
	}
	now := word.Load()
	if now%2 == 0 || now == mine {
		return false
	}
	longest = min(longest, queueLongest)
	if !single {
		return sleepWhile(word, now, longest)
	}
	quick.Store(1)
	return word.Load() != now || sleepWhile(quick, 1, longest) // it may have left before it could see that
}

// pass gives the process that leave has woken the time to get the lock, and joins the end of the queue.
func (q *lockQueue) pass(longest time.Duration) {
	q.mu.Lock()
	word := q.word
	q.mu.Unlock()
	if word == nil {
		return
	}
	if now := word.Load(); now%2 == 0 {
		sleepWhile(word, now, longest)
	}
}
