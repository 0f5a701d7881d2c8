package harness

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// proxy forwards the connections of one simulated host to the primary server.
// It can cut them and stall them.
type proxy struct {
	listener net.Listener
	to       func() string // returns the path of the socket of the primary server

	mu      sync.Mutex
	conns   map[net.Conn]bool
	cutNext bool          // whether to cut the connection of the next request after the request has reached the server
	stalled chan struct{} // closed at the end of the stall; nil if the proxy isn't stalled
}

func newProxy(to func() string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}

	p := &proxy{listener: listener, to: to, conns: map[net.Conn]bool{}}
	go p.accept() // this goroutine ends when the listener is closed
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.handle(client)
	}
}

func (p *proxy) handle(client net.Conn) {
	defer closeConn(client)

	p.waitWhileStalled()
	server, err := net.Dial("unix", p.to())
	if err != nil {
		return
	}
	defer closeConn(server)

	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.forward(server, client, true) })
	both.Go(func() { p.forward(client, server, false) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mu.Unlock()
}

// forward copies one direction of a connection until either side is closed.
// Then it closes both.
func (p *proxy) forward(to, from net.Conn, request bool) {
	defer closeConn(to)
	defer closeConn(from)

	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.waitWhileStalled()
		p.mu.Lock()
		cut := request && p.cutNext && n > 0
		if cut {
			p.cutNext = false
		}

		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if cut {
			time.Sleep(rand.N(3 * time.Millisecond)) // the server needs some time to handle the request
			return
		}
		if err != nil { // the error is io.EOF, or the proxy has cut the connection
			return
		}
	}
}

func closeConn(conn net.Conn) { _ = conn.Close() } // fails if the goroutine of the other direction has closed conn already

// waitWhileStalled waits until the proxy isn't stalled.
func (p *proxy) waitWhileStalled() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

// cutNextReply cuts the connection of the next request before the server
// replies.
func (p *proxy) cutNextReply() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutNext = true
}

// cut cuts all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		closeConn(conn)
	}
}

// stall stops all traffic until the returned function is called. It returns
// false if the proxy is stalled already.
func (p *proxy) stall() (resume func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.stalled != nil {
		return nil, false
	}

	over := make(chan struct{})
	p.stalled = over
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.stalled = nil
		close(over)
	}, true
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.cut()
}
