package web

import (
	"container/list"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
)

// maxConnections is the maximum number of open connections. Each connection needs about 20 KiB of memory. The streams
// of open pages may use half of the connections.
const maxConnections = 2 * maxStreams

// releaseThreshold is a number of connections. The server returns memory to the system only after so many connections were open at once.
const releaseThreshold = 200

// connections are the open connections of a server. When there are too many, a new connection replaces the connection
// that has waited longest for a request. If no connection waits, the new one replaces the connection with the oldest
// request. A user therefore gets pages even while other clients hold all connections.
type connections struct {
	mu        sync.Mutex
	waiting   list.List // connections (net.Conn) without a request, in the order of their last requests
	busy      list.List // connections (net.Conn) with a request, in the order in which the requests began
	positions map[net.Conn]position
	peak      int // largest number of open connections since the last release of memory
}

// position is the place of a connection in the list "waiting" or in the list "busy".
type position struct {
	list    *list.List
	element *list.Element
}

// changed updates the lists of connections when a connection changes its state. It is the ConnState hook of an http.Server.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.positions[conn]
	if !known && state != http.StateNew {
		return // closeOldest has already closed the connection
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

// releaseMemory returns memory to the system if at least releaseThreshold connections were open at once, and three quarters of them have
// closed. Without releaseMemory, an idle process would keep the memory of closed connections for minutes.
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
	_ = conn.Close() // the goroutine of the connection gets an error from its read, and ends
}
