package web_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// proxy forwards connections to a server. While it is stopped, it accepts
// connections and holds their bytes back, as the kernel does for a process that
// has received SIGSTOP.
type proxy struct {
	listen net.Listener
	to     string // path of the unix socket of the server
	work   sync.WaitGroup

	mu    sync.Mutex
	open  chan struct{} // channel that is closed while the proxy forwards bytes, and not closed while the proxy is stopped
	conns []net.Conn
	ended bool
}

// serveSlowly starts a server behind a proxy.
func serveSlowly(t testing.TB, r *runner.Runner) (*site, *proxy) {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.NoError(t, err)
	p := &proxy{listen: listen, to: filepath.Join(t.TempDir(), "s"), open: make(chan struct{})}
	close(p.open)
	p.work.Go(p.accept)
	t.Cleanup(p.end)
	return serve(t, r, web.ServerOptions{Listen: "unix:" + p.to, PublicURL: "http://" + listen.Addr().String()}), p
}

func (p *proxy) accept() {
	for {
		from, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.forward(from) })
	}
}

// forward waits until the proxy is not stopped, and only then connects to the
// server. Otherwise the server would have connections on which it receives no
// request.
func (p *proxy) forward(from net.Conn) {
	defer from.Close()
	<-p.now()
	to, err := net.Dial("unix", p.to)
	if err != nil {
		return
	}
	defer to.Close()
	if p.keep(from, to) {
		p.work.Go(func() { p.copy(from, to) })
		p.copy(to, from)
	}
}

// now returns a channel that is closed unless the proxy is stopped.
func (p *proxy) now() chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
	return !p.ended
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		<-p.now()
		if _, failed := to.Write(piece[:n]); err != nil || failed != nil {
			return
		}
	}
}

// stop holds all bytes back.
func (p *proxy) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// cont lets all bytes pass.
func (p *proxy) cont() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

func (p *proxy) end() {
	p.cont()
	p.mu.Lock()
	p.ended = true
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.listen.Close()
	p.work.Wait()
}

// connected waits until an open page receives events.
func (b *browser) connected() {
	b.t.Helper()
	b.until("it is connected", "stream && stream.readyState === 1 && !busy")
}

func TestSilentServerIsShownInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	id := shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	s, p := serveSlowly(t, r)
	b := browse(t, s)
	b.screen(1280, "light")
	b.open(fmt.Sprintf("/tasks/%d", id))
	b.connected()

	p.stop()
	testkit.Within(t, 2*time.Minute, "a page without an action is amber", func() bool {
		return eval[string](b, "$('#live').className + $('#live').textContent.trim()") == "amber● offline"
	})
	testkit.Contains(t, eval[string](b, "$('#stale').textContent"), "The server has not answered since")
	eval[int](b, "limits.slow = 500")
	b.run(chromedp.Click("#head button.primary"))
	b.until("the page says that it still sends", "$('#ask[open] h1')?.textContent === 'Still sending'")
	b.shot("sending-1280-light")
	b.run(chromedp.Click("#ask [data-again]"))
	b.until("the second try waits, too", "$('#ask[open] h1')?.textContent === 'Still sending' && $('#ask p').textContent.includes('2')")

	p.cont()
	b.until("the action is not lost: the page asks", "$('#ask[open] form[action$=retry]')")
	b.until("the page is live again", "$('#live').textContent.trim() === '● live' && !$('#live').className && !$('#stale').textContent")
	if got := state(t, r, id); got != jobs.Pending && got != jobs.Failed {
		t.Errorf("got state %s, want pending or failed", got)
	}
	b.run(chromedp.Click("#ask button.primary"), chromedp.WaitVisible(".flash"))
	testkit.Equal(t, "state", state(t, r, id), jobs.Pending)
}

func TestActionOnSlowNetworkIsDoneOnce(t *testing.T) {
	t.Parallel()
	r := open(t)
	id := shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	s, p := serveSlowly(t, r)
	b := browse(t, s)
	b.open(fmt.Sprintf("/tasks/%d", id))
	b.connected()
	eval[int](b, "limits.slow = 500")
	p.stop()
	b.run(chromedp.Click("#head button.primary"))
	b.until("the page says that it still sends", "$('#ask[open] h1')?.textContent === 'Still sending'")
	b.run(chromedp.Click("#ask [data-close]"))
	p.cont()
	b.until("the answer comes", "document.querySelector('.flash')?.textContent.includes('1 task retried')")
	testkit.Equal(t, "state", state(t, r, id), jobs.Pending)
	testkit.Equal(t, "number of requests", b.actions(), 1)
}

func TestSilentStreamIsOpenedAgain(t *testing.T) {
	t.Parallel()
	r := open(t)
	b := browse(t, serve(t, r, webOptions))
	b.connected()
	eval[bool](b, "(window.first = stream, true)")
	b.until("the page opens another stream", `(stream === window.first ? heard = 0 : // pretend that no event has arrived
		stream?.readyState === 1 && window.first.readyState === 2)`)
	b.until("the page is live", "$('#live').textContent.trim() === '● live'")
	id, err := r.Enqueue(context.Background(), jobs.Command(command.Shell("true")))
	testkit.Equal(t, "error", err, nil)
	b.until("the page shows changes", fmt.Sprintf("document.querySelector('#queues').textContent.includes('1') && %d > 0", id.ID))
}

func TestStreamOfEventsIsNeverSilent(t *testing.T) {
	script, err := os.ReadFile("static/app.js")
	testkit.NoError(t, err)
	found := regexp.MustCompile(`silence: (\d+)`).FindSubmatch(script)
	silence, err := time.ParseDuration(string(found[1]) + "ms")
	testkit.NoError(t, err)
	if web.KeepAlive > silence-3*time.Second {
		t.Errorf("got an event every %v, want 3s to spare before the page reconnects after %v", web.KeepAlive, silence)
	}

	s := serve(t, open(t), webOptions)
	res, err := s.client.Do(s.request("GET", "/events", nil))
	testkit.NoError(t, err)
	defer res.Body.Close()
	var text strings.Builder
	piece := make([]byte, 1000)
	// An event, because the browser doesn't show comments in the stream to the
	// script of the page.
	for !strings.Contains(text.String(), "event: alive\ndata: ") {
		n, err := res.Body.Read(piece)
		if text.Write(piece[:n]); err != nil {
			t.Fatalf("got the events %q and the error %v, want an event of type alive", text.String(), err)
		}
	}
}
