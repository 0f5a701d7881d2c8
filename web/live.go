package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/runner"
)

// An open page subscribes to changes of the database. The server notifies the
// page at most once a second, and the page then loads its content again. One
// goroutine polls the database for all pages, and only while a page is open.

const (
	pollInterval = time.Second
	maxStreams   = 500 // maximum number of open streams
)

// keepAliveInterval is the longest time between two events. The script of a
// page reconnects after 14 s without one. It is a variable so that tests wait
// less.
var keepAliveInterval = 10 * time.Second

// live notifies the open pages of changes.
type live struct {
	r *runner.Runner

	mu    sync.Mutex
	pages int
	poll  *poll // nil while nothing polls
}

// poll is a goroutine that polls the database.
type poll struct {
	stop    context.CancelFunc
	ended   chan struct{} // closed when it no longer uses the database
	changed chan struct{} // closed at the next change
}

// subscribe returns the poll of all pages, or nil if too many are open. The
// caller must call unsubscribe.
func (l *live) subscribe() *poll {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.pages >= maxStreams {
		return nil
	}

	l.pages++
	if l.poll == nil {
		ctx, stop := context.WithCancel(context.Background())
		l.poll = &poll{stop, make(chan struct{}), make(chan struct{})}
		go l.run(ctx, l.poll)
	}

	return l.poll
}

// run polls until ctx ends, or until the database fails: then the pages connect
// again, and report its error.
func (l *live) run(ctx context.Context, p *poll) {
	defer close(p.ended)
	defer p.stop()

	_ = changes(ctx, l.r, pollInterval, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(p.changed)
		p.changed = make(chan struct{})
	})
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.poll == p {
		l.poll = nil
	}
}

// changes calls changed after commits of any process, but at most once in
// every. It returns when ctx ends, or with jobs.ErrReplaced. admin.Changes
// detects commits earlier, but its work grows with the number of commits. This
// doesn't.
func changes(ctx context.Context, r *runner.Runner, every time.Duration, changed func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	commits := make(chan struct{}, 1)
	if err := db.Of(r).Watch(ctx, every, func(bool) {
		select {
		case commits <- struct{}{}:
		default:
		}
	}); err != nil {
		return err
	}

	ticker := time.NewTicker(every)
	defer ticker.Stop()

	for next := commits; ; {
		select {
		case <-next:
			changed()
			next = nil
		case <-ticker.C:
			if err := db.Of(r).Replaced(); err != nil {
				return err
			}
			next = commits
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// next returns a channel that closes at the next change.
func (l *live) next(p *poll) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.changed
}

// unsubscribe ends polling after the last page. It waits until the goroutine no
// longer uses the database, because the caller may close it next.
func (l *live) unsubscribe() {
	l.mu.Lock()
	l.pages--
	p := l.poll
	if l.pages > 0 || p == nil {
		l.mu.Unlock()
		return
	}

	l.poll = nil
	l.mu.Unlock()
	p.stop()
	<-p.ended
}

// stream is a response without an end. Each write has a deadline, but the whole
// response has none.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newStream(w http.ResponseWriter, kind string) *stream {
	s := &stream{w, http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{}) // ignore the error of a writer that has no deadlines
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Accel-Buffering", "no") // without this header, some proxies buffer the response
	return s
}

// write sends text immediately, without buffering.
func (s *stream) write(text []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}

// events sends a rev event to a page soon after it connects, and then after
// each change, and alive events, so that the page notices a server that doesn't
// answer. (Browsers hide comments in the stream from scripts.)
func (h *handler) events(w http.ResponseWriter, req *http.Request) {
	p := h.live.subscribe()
	if p == nil {
		w.Header().Set("Connection", "close") // so that other clients can connect
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer h.live.unsubscribe()

	s := newStream(w, "text/event-stream")
	if s.write([]byte("retry: 3000\n\n")) != nil {
		return
	}

	alive := time.NewTicker(keepAliveInterval)
	defer alive.Stop()

	first := time.After(pollInterval) // for changes between the load of the page and the subscription
	changed := h.live.next(p)
	for n := 1; ; n++ {
		kind := "rev"
		select {
		case <-req.Context().Done():
			return
		case <-p.ended:
			return
		case <-changed:
			changed = h.live.next(p) // before the page reads, so that it misses no change
		case <-first:
		case <-alive.C:
			kind = "alive"
		}

		if s.write(fmt.Appendf(nil, "event: %s\ndata: %d\n\n", kind, n)) != nil {
			return
		}
	}
}
