package sqlite

import (
	"sync"
	"sync/atomic"
)

// commitCount counts the commits of other connections; the watch of this process reports them. Their number is the number of all commits
// minus the number of the writer's own commits. SQLite keeps the first number in the shared memory of the database, and the writer counts
// the second one. The writer does not count commits without changes, because SQLite does not count them either.
type commitCount struct {
	mu      sync.Mutex
	all     *atomic.Uint32 // SQLite's counter of commits; nil if it cannot be read
	own     uint32         // number of commits of the writer
	pending bool           // whether the writer is committing: the field "own" counts this commit, the counter of SQLite perhaps not yet
	next    uint32         // if pending: value of the counter of SQLite after this commit, unless other connections commit before it
}

// open sets the field "all" to the counter of SQLite, or to nil if the counter cannot be read.
func (c *commitCount) open(all *atomic.Uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = all
}

// begin counts the writer's commit before it is made. Another connection can still commit first, because the writer may not have the write
// lock yet. The method "read" counts the other connection's commit late: only after the writer's commit has succeeded or failed.
func (c *commitCount) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all != nil {
		c.own, c.pending, c.next = c.own+1, true, c.all.Load()+1
	}
}

// end must be called after the commit. It subtracts a commit that failed or that had nothing to write.
func (c *commitCount) end(failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending && (failed || c.all != nil && c.all.Load() == c.next-1) {
		c.own--
	}
	c.pending = false
}

// read returns the number of all commits, and the number of commits of other connections. ok is false if the counter cannot be read. When
// SQLite rebuilds the shared memory, both numbers start again at an arbitrary value.
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
