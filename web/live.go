package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/runner"
)

// An open page subscribes to changes of the database. The server notifies the page at most once a second, and the page
// then loads its content again. One goroutine polls the database for all pages, and only while a page is open.

const (
	pollInterval      = time.Second
	maxStreams        = 500              // maximum number of open streams
	keepAliveInterval = 10 * time.Second // the script of a page reconnects after 14 s without an event
)

// live notifies the open pages of changes.
type live struct {
	r *runner.Runner

	mu          sync.Mutex
	subscribers map[chan struct{}]struct{}
	stop        context.CancelFunc // stops polling; nil while nothing polls
	done        chan struct{}      // closed when polling has ended
}

var errTooMany = errors.New("too many pages are open")

// subscribe returns a channel that receives a value after a change. The channel is closed when polling ends. The caller
// must call unsubscribe.
func (l *live) subscribe() (chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.subscribers) >= maxStreams {
		return nil, errTooMany
	}
	if l.subscribers == nil {
		l.subscribers = map[chan struct{}]struct{}{}
	}
	subscriber := make(chan struct{}, 1)
	l.subscribers[subscriber] = struct{}{}
	if l.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		l.stop, l.done = stop, done
		go func() {
			defer close(done)
			// Ignore the error: the pages read the same database, and report its errors.
			_ = admin.Changes(ctx, l.r, pollInterval, l.notify)
			l.closeAll(done)
		}()
	}
	return subscriber, nil
}

func (l *live) notify() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for subscriber := range l.subscribers {
		select {
		case subscriber <- struct{}{}:
		default: // the subscriber has not read the last notification, so it needs no other
		}
	}
}

// closeAll closes the channels of the remaining subscribers when polling has ended with an error.
func (l *live) closeAll(done chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done != done {
		return
	}
	for subscriber := range l.subscribers {
		close(subscriber)
	}
	l.subscribers, l.stop, l.done = nil, nil, nil
}

// unsubscribe removes a subscriber. After the last subscriber it stops polling. It waits until the polling goroutine uses
// no database connection, because the caller may close the database next.
func (l *live) unsubscribe(subscriber chan struct{}) {
	l.mu.Lock()
	var done chan struct{}
	if _, there := l.subscribers[subscriber]; there {
		if delete(l.subscribers, subscriber); len(l.subscribers) == 0 {
			l.stop()
			done = l.done
			l.stop, l.done = nil, nil
		}
	}
	l.mu.Unlock()
	if done != nil {
		<-done
	}
}

// stream is a response without an end. Each write has a deadline, but the whole response has none.
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

// events sends an event of type "rev" to a page soon after the page connects, and then after each change. It sends events of type "alive"
// so that the page notices a server that does not answer. Comments in the stream would not be enough, because browsers hide them from
// scripts.
func (h *handler) events(w http.ResponseWriter, req *http.Request) {
	subscriber, err := h.live.subscribe()
	if err != nil {
		w.Header().Set("Connection", "close") // so that other clients can connect
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.live.unsubscribe(subscriber)
	s := newStream(w, "text/event-stream")
	if s.write([]byte("retry: 3000\n\n")) != nil {
		return
	}
	alive := time.NewTicker(keepAliveInterval)
	defer alive.Stop()
	first := time.After(pollInterval) // the first event reports changes between the load of the page and the subscription
	for n := 1; ; n++ {
		text := fmt.Appendf(nil, "event: rev\ndata: %d\n\n", n)
		select {
		case <-req.Context().Done():
			return
		case _, ok := <-subscriber:
			if !ok {
				return
			}
		case <-first:
		case <-alive.C:
			text = fmt.Appendf(nil, "event: alive\ndata: %d\n\n", n)
		}
		if s.write(text) != nil {
			return
		}
	}
}
