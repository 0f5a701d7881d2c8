package sqlite

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func queueOn(word *atomic.Uint32) *lockQueue {
	q := &lockQueue{}
	q.open(word, new(atomic.Uint32))
	return q
}

func TestTheHolderWakesTheFirstInTheQueueWhenItLeaves(t *testing.T) {
	var word atomic.Uint32
	holder, other := queueOn(&word), queueOn(&word)
	for woken := false; !woken; { // until it leaves while the other one sleeps
		over := make(chan struct{})
		holder.enter()
		go func() {
			defer close(over)
			for other.wait(time.Hour, false) {
			}
		}()
		runtime.Gosched()
		woken = holder.leave()
		<-over
	}
}

// A process that was killed or stopped never leaves.
func TestAHolderThatNeverLeavesDelaysOthersForAMomentOnly(t *testing.T) {
	var word atomic.Uint32
	dead, other := queueOn(&word), queueOn(&word)
	dead.enter()
	began := time.Now()
	if !other.wait(time.Hour, false) {
		t.Error("it did not wait at all")
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it waited for %v", took)
	}
	other.enter()
	if other.leave(); word.Load()%2 != 0 {
		t.Error("the one after the dead one could not leave")
	}
	if dead.leave() || word.Load()%2 != 0 {
		t.Error("the dead one came back, and changed what belongs to another")
	}
}

func TestAProcessDoesNotWaitForItself(t *testing.T) {
	var word atomic.Uint32
	q := queueOn(&word)
	if q.wait(time.Hour, false) {
		t.Error("it waited while nobody had the lock")
	}
	q.enter()
	if q.wait(time.Hour, false) {
		t.Error("it waited for itself")
	}
	if q.open(nil, nil); word.Load()%2 != 0 {
		t.Error("it has not left")
	}
	if q.enter(); q.wait(time.Hour, false) || q.leave() {
		t.Error("a queue without a word")
	}
}

func TestAStretchOfWritingEndsWhenNoWriteFollows(t *testing.T) {
	var word atomic.Uint32
	q, other := queueOn(&word), queueOn(&word)
	q.enter()
	q.leaveAfter(time.Millisecond)
	for other.wait(time.Hour, false) {
	}
	if word.Load()%2 != 0 {
		t.Error("it has not left")
	}
}

func TestASingleWriteDoesNotWaitForTheEndOfAStretch(t *testing.T) {
	var word, quick atomic.Uint32
	holder, single, waiting := &lockQueue{}, &lockQueue{}, &lockQueue{}
	for _, q := range []*lockQueue{holder, single, waiting} {
		q.open(&word, &quick)
	}
	if holder.isAwaited() {
		t.Error("nobody waits")
	}
	holder.enter()
	over := make(chan struct{})
	go func() {
		defer close(over)
		single.wait(time.Hour, true)
	}()
	for !holder.isAwaited() {
		runtime.Gosched()
	}
	holder.leave()
	<-over
	if quick.Load() != 0 {
		t.Error("the next holder would let somebody pass who has gone")
	}
}
