package sqlite

import (
	"sync/atomic"
	"testing"
)

func TestAFailedCommitIsNotCountedAsOneOfOthers(t *testing.T) {
	var all atomic.Uint32
	var c commitCount
	c.open(func() (uint32, bool) { return all.Load(), true })
	wantOthers := func(when string, want uint32) {
		t.Helper()
		if _, others, ok := c.read(); !ok || others != want {
			t.Errorf("%s: got %d commits of others (counter read: %v), want %d", when, others, ok, want)
		}
	}
	c.begin()
	wantOthers("before SQLite counts the commit", 0)
	all.Add(1)
	wantOthers("after SQLite has counted the commit", 0)
	c.end(false)
	wantOthers("after the commit", 0)
	all.Add(1)
	wantOthers("after a commit of another process", 1)
	c.begin()
	c.end(true)
	all.Add(1)
	wantOthers("after a failed commit and one of another process", 2)
	c.begin()
	c.end(false) // the commit had nothing to write
	all.Add(1)
	wantOthers("after a commit without changes and one of another process", 3)
	all.Store(0)
	c.begin()
	all.Add(1)
	c.end(false)
	if _, before, _ := c.read(); before != 0 {
		all.Add(1)
		wantOthers("after the counter has started again and another process has committed", before+1)
	}
}
