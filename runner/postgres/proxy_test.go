package postgres_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// proxy forwards connections to a server, and can cut them in the middle of a
// message.
type proxy struct {
	net.Listener
	to string // socket of the server
	at string // the proxy cuts a connection when a message contains this text; empty after the cut

	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	p := &proxy{Listener: l, to: to}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := p.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", p.to)
			if err != nil {
				conn.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, conn, server)
			p.mu.Unlock()
			for _, pair := range [][2]net.Conn{{conn, server}, {server, conn}} {
				all.Go(func() {
					_, _ = io.Copy(listening{pair[0], p}, pair[1]) // copies until the connection is cut
					pair[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cut()
		all.Wait()
	})
	return p
}

// listening is one end of a connection through a proxy. Write forwards a
// message, but returns an error if the message contains the text in p.at.
type listening struct {
	net.Conn
	p *proxy
}

func (l listening) Write(data []byte) (int, error) {
	l.p.mu.Lock()
	cut := l.p.at != "" && bytes.Contains(data, []byte(l.p.at))
	if cut {
		l.p.at = ""
	}
	l.p.mu.Unlock()
	if cut {
		return 0, io.ErrClosedPipe
	}

	return l.Conn.Write(data)
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		conn.Close()
	}
	p.conns = nil
}
