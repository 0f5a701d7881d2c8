package sqlite

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func newQueue(word *atomic.Uint32) *lockQueue {
	q := &lockQueue{}
	q.open(word, new(atomic.Uint32))
	return q
}

// wantFree fails the test if the word of the queue is odd, which means that a process of the queue has the lock.
func wantFree(t *testing.T, word *atomic.Uint32) {
	t.Helper()
	if got := word.Load(); got%2 != 0 {
		t.Errorf("got word %d, want an even number, because no process has the lock", got)
	}
}

func TestLeaveWakesTheFirstWaiter(t *testing.T) {
	var word atomic.Uint32
	holder, other := newQueue(&word), newQueue(&word)
	for woken := false; !woken; { // repeat until the other process is asleep in the queue when leave is called
		done := make(chan struct{})
		holder.enter()
		go func() {
			defer close(done)
			for other.wait(time.Hour, false) {
			}
		}()
		runtime.Gosched()
		woken = holder.leave()
		<-done
	}
}

// TestADeadHolderDelaysAWaiterForLessThanASecond simulates a holder of the lock that was killed or stopped: it never calls leave.
func TestADeadHolderDelaysAWaiterForLessThanASecond(t *testing.T) {
	var word atomic.Uint32
	dead, other := newQueue(&word), newQueue(&word)
	dead.enter()
	began := time.Now()
	if !other.wait(time.Hour, false) {
		t.Error("got no wait, want one while the dead process has the lock")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("got a wait of %v, want at most 1s", took)
	}
	other.enter()
	other.leave()
	wantFree(t, &word)
	if dead.leave() {
		t.Error("the dead process leaves late: got a waiter woken, want none")
	}
	wantFree(t, &word)
}

func TestAProcessDoesNotWaitForItself(t *testing.T) {
	var word atomic.Uint32
	q := newQueue(&word)
	wantNoWait := func(when string) {
		t.Helper()
		if q.wait(time.Hour, false) {
			t.Errorf("%s: got a wait, want none", when)
		}
	}
	wantNoWait("no process has the lock")
	q.enter()
	wantNoWait("this process has the lock")
	q.open(nil, nil)
	wantFree(t, &word)
	q.enter()
	wantNoWait("a queue without a word")
	if q.leave() {
		t.Error("a queue without a word: got a waiter woken, want none")
	}
}

func TestLeaveAfterLeavesWhenNoWriteFollows(t *testing.T) {
	var word atomic.Uint32
	q, other := newQueue(&word), newQueue(&word)
	q.enter()
	q.leaveAfter(time.Millisecond)
	for other.wait(time.Hour, false) {
	}
	wantFree(t, &word)
}

func TestASingleWriteDoesNotWaitForLaterWritesOfTheHolder(t *testing.T) {
	var word, quick atomic.Uint32
	holder, single, waiting := &lockQueue{}, &lockQueue{}, &lockQueue{}
	for _, q := range []*lockQueue{holder, single, waiting} {
		q.open(&word, &quick)
	}
	if holder.isAwaited() {
		t.Error("got a waiter with a single write, want none")
	}
	holder.enter()
	done := make(chan struct{})
	go func() {
		defer close(done)
		single.wait(time.Hour, true)
	}()
	for !holder.isAwaited() {
		runtime.Gosched()
	}
	holder.leave()
	<-done
	if got := quick.Load(); got != 0 {
		t.Errorf("got quick = %d after the single write, want 0, because no process waits", got)
	}
}
