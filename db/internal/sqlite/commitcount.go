package sqlite

import "sync"

// commitCount counts the commits of other connections, so that the watch of this process can report them. This number is the number of all
// commits minus the number of the writer's commits. SQLite counts all commits in the WAL-index. The writer counts its
// own commits, except commits without changes, because SQLite does not count these either.
type commitCount struct {
	mu sync.Mutex
	// all reads SQLite's counter of commits. It is nil while the file isn't open.
	all     func() (n uint32, ok bool)
	own     uint32 // number of commits of the writer
	pending bool   // whether the writer is committing: the field "own" counts this commit, but SQLite's counter may not yet
	next    uint32 // value of SQLite's counter after the pending commit, unless another connection commits first
}

// open sets the field "all".
func (c *commitCount) open(all func() (uint32, bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = all
}

// begin counts a commit of the writer just before the writer makes it. At this time the writer may not have the write lock yet, so another
// connection can commit first. The method "read" then counts the commit of the other connection only after the writer's commit has
// succeeded or failed.
func (c *commitCount) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all, ok := c.count(); ok {
		c.own, c.pending, c.next = c.own+1, true, all+1
	}
}

// end must be called after each commit that begin has counted. If the commit failed or had nothing to write, end subtracts it from the
// number of the writer's commits.
func (c *commitCount) end(failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all, ok := c.count(); c.pending && (failed || ok && all == c.next-1) {
		c.own--
	}
	c.pending = false
}

// read returns the number of all commits, and the number of commits of other connections. The result "ok" is false if the counter cannot be
// read. When SQLite rebuilds the WAL-index, both numbers continue from an arbitrary value.
func (c *commitCount) read() (all, others uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all, ok = c.count(); !ok {
		return 0, 0, false
	}
	others = all - c.own
	if c.pending && int32(c.next-all) > 0 {
		others++
	}
	return all, others, true
}

// count reads SQLite's counter. The caller holds the mutex.
func (c *commitCount) count() (n uint32, ok bool) {
	if c.all == nil {
		return 0, false
	}
	return c.all()
}
