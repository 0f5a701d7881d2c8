package sqlite

import (
	"sync"
	"sync/atomic"
)

// commitCount tells the commits of other connections from those of the writer. SQLite counts all commits in the shared memory of
// the database; the writer counts those of its own that are sure to be among them.
type commitCount struct {
	mu      sync.Mutex
	all     *atomic.Uint32 // SQLite's counter; nil: it cannot be read
	own     uint32         // commits of the writer
	pending bool           // the last one of own may not be in all yet
	next    uint32         // the value of all when it is
}

// open sets the counter; nil: there is none.
func (c *commitCount) open(all *atomic.Uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = all
}

// begin counts a commit of the writer before it is made. If the writer does not have the write lock yet, another connection's
// commit in between is counted as soon as this one is made, or has failed.
func (c *commitCount) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all != nil {
		c.own, c.pending, c.next = c.own+1, true, c.all.Load()+1
	}
}

// end follows begin, after the commit. One that failed, or that had nothing to write, is not counted.
func (c *commitCount) end(failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending && (failed || c.all != nil && c.all.Load() == c.next-1) {
		c.own--
	}
	c.pending = false
}

// read returns the number of all commits, and of those of other connections; false: it cannot tell. They begin anew at any number when
// SQLite rebuilds the shared memory.
func (c *commitCount) read() (all, others uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		return 0, 0, false
	}
	all = c.all.Load()
	others = all - c.own
	if c.pending && int32(c.next-all) > 0 {
		others++
	}
	return all, others, true
}
