package sqlite

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// lockQueue lets processes that wait for the write lock sleep in a queue of the kernel (a futex). SQLite has no such queue. Without
// lockQueue each waiting process tries again every half millisecond, and the process that tries at the right moment gets the lock.
//
// The queue is only a hint. SQLite's own lock decides which process writes, and every sleep has a short limit. So a program that does not
// use the queue, such as the sqlite3 shell, works as before. A process may be killed or stopped while it has the lock, or while it is the
// next process in the queue. In this case the other processes notice it when their sleep ends. So they lose the time of one sleep, in
// addition to the time for which the process holds SQLite's lock.
//
// The queue uses a word in the shared memory of the database.
//
// A process that gets the write lock sets the word to a new odd number. The process may then run a series of many transactions. At the end
// of this series it adds one to the word and wakes the first sleeping process. Some processes write only from time to time. Such a process
// does not wait for the end of a series: it sleeps on a second word, and the holder of the lock lets it write after the current
// transaction. Its write is called a single write.
type lockQueue struct {
	mu    sync.Mutex
	word  *atomic.Uint32 // first word: odd while a process of the queue has the lock; nil if there is no queue
	quick *atomic.Uint32 // second word: not 0 if a process waits to make a single write (it writes only from time to time)
	mine  uint32         // odd number to which this process has set the first word; 0 when the series of writes has ended
	timer *time.Timer    // timer that ends the series of writes if no other write follows
}

// maxQueueSleep is the longest sleep in the queue.
const maxQueueSleep = 20 * time.Millisecond

// open sets the two words in shared memory that the queue uses. They are nil if there is no queue.
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

// The method "leave" ends the series of writes of this process. If other processes wait to make a single write, it wakes all of them. If
// there are none, it wakes the first process in the queue. It returns false if it wakes no process.
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
		return false // another process already has the lock, and will wake the sleeping processes
	}
	return q.quick.Swap(0) != 0 && wake(q.quick, math.MaxInt32) || wake(q.word, 1)
}

// isAwaited reports whether another process waits for the lock of this process to make a single write, and not a series of writes.
func (q *lockQueue) isAwaited() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mine != 0 && q.quick.Load() != 0
}

// leaveAfter ends the series of writes of this process if no other write of this process follows within the pause.
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

// wait sleeps until the process with the write lock calls leave, or until a limited time has passed. The parameter "single" says whether
// this process writes only from time to time (a single write). wait returns false at once if no other process of the queue has the lock.
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
	longest = min(longest, maxQueueSleep)
	if !single {
		return sleepWhile(word, now, longest)
	}
	quick.Store(1)
	// If the first word has changed, the process with the lock has called leave. Perhaps it called leave before it could see that this
	// process waits. Then it has not woken this process, so do not sleep.
	return word.Load() != now || sleepWhile(quick, 1, longest)
}

// pass sleeps at the end of the queue for a limited time. Meanwhile the process that the method "leave" has woken can get the lock.
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
