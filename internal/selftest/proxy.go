package selftest

import (
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// proxy is the way from one host to the server: it can be cut, and it can stall.
type proxy struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	conns   map[net.Conn]bool
	cutNext bool          // what is said next reaches the server, and its answer nobody
	stalled chan struct{} // closed when it goes on; nil: it goes
}

func newProxy(to string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, to: to, conns: map[net.Conn]bool{}}
	go p.accept() // until it is closed
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
	server, err := net.Dial("unix", p.to)
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

// carry takes what is said in one direction, until either side is closed; then both are.
func (p *proxy) forward(to, from net.Conn, question bool) {
	defer closeConn(to)
	defer closeConn(from)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.waitWhileStalled()
		p.mu.Lock()
		doomed := question && p.cutNext && n > 0
		if doomed {
			p.cutNext = false
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if doomed {
			time.Sleep(rand.N(3 * time.Millisecond)) // the server is at it
			return
		}
		if err != nil { // io.EOF, or cut
			return
		}
	}
}

func closeConn(conn net.Conn) { _ = conn.Close() } // the other direction may have been quicker

// wait waits while it stalls.
func (p *proxy) waitWhileStalled() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

// doom cuts the next connection by which something is said, between the question and the answer.
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

// stall lets nothing pass until the returned function is called. False: it stalls already.
func (p *proxy) stall() (goOn func(), ok bool) {
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
