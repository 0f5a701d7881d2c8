package sqlite

import (
	"sync/atomic"
	"testing"
)

func TestACommitThatFailedHidesNoneOfOthers(t *testing.T) {
	var all atomic.Uint32
	var c commitCount
	c.open(&all)
	expect := func(when string, want uint32) {
		t.Helper()
		if _, others, ok := c.read(); !ok || others != want {
			t.Errorf("%s: %d commits of others, want %d", when, others, want)
		}
	}
	c.begin()
	expect("before the commit is seen", 0)
	all.Add(1)
	expect("when it is seen", 0)
	c.end(false)
	expect("after it", 0)
	all.Add(1)
	expect("another process has committed", 1)
	c.begin()
	c.end(true)
	all.Add(1)
	expect("the writer failed, and another process has committed", 2)
	c.begin()
	c.end(false) // nothing was written
	all.Add(1)
	expect("the writer had nothing to write, and another process has committed", 3)
	all.Store(0)
	c.begin()
	all.Add(1)
	c.end(false)
	if _, before, _ := c.read(); before != 0 {
		all.Add(1)
		if _, after, _ := c.read(); after != before+1 {
			t.Error("after the counter began anew a commit of others is not seen")
		}
	}
}
