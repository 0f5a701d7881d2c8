package web

import (
	"container/list"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
)

// maxConnections is how many connections a server holds at once: each costs about 20 KiB. The streams of open pages need half of them.
const maxConnections = 2 * maxStreams

// releaseThreshold are worth a collection of garbage when they have ended.
const releaseThreshold = 200

// connections are the open connections of a server. A new one that is too many replaces another one: that which has waited for a request
// for the longest, else that which has been busy with one for the longest. So a person still gets pages while others hold all connections.
type connections struct {
	mu        sync.Mutex
	waiting   list.List // of net.Conn, by the time since which no request is under way
	busy      list.List // of net.Conn, by the time when their request began
	positions map[net.Conn]position
	peak      int // the most connections since memory was last given back
}

// position is where a connection is in one of the two lists.
type position struct {
	list    *list.List
	element *list.Element
}

// changed is the hook ConnState of an http.Server.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.positions[conn]
	if !known && state != http.StateNew {
		return // it was closed to make room
	}
	if known {
		at.list.Remove(at.element)
		delete(c.positions, conn)
		c.releaseMemory()
	}
	switch state {
	case http.StateNew:
		if len(c.positions) >= maxConnections {
			c.closeOldest()
		}
		c.add(conn, &c.waiting)
	case http.StateIdle:
		c.add(conn, &c.waiting)
	case http.StateActive:
		c.add(conn, &c.busy)
	}
}

func (c *connections) add(conn net.Conn, to *list.List) {
	if c.positions == nil {
		c.positions = map[net.Conn]position{}
	}
	c.positions[conn] = position{to, to.PushBack(conn)}
	c.peak = max(c.peak, len(c.positions))
}

// releaseMemory returns memory to the system when most of very many connections have ended: an idle process would keep it for minutes.
func (c *connections) releaseMemory() {
	if c.peak >= releaseThreshold && len(c.positions) <= c.peak/4 {
		c.peak = 0
		go debug.FreeOSMemory()
	}
}

func (c *connections) closeOldest() {
	from := &c.waiting
	if from.Len() == 0 {
		from = &c.busy
	}
	conn := from.Remove(from.Front()).(net.Conn)
	delete(c.positions, conn)
	_ = conn.Close() // whoever serves it notices
}
