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

// Open pages are told when the database has changed, at most once a second, and fetch themselves again. One goroutine looks for all of
// them, and none while no page is open.

const (
	pollInterval      = time.Second
	maxStreams        = 500 // streams at once
	keepAliveInterval = 20 * time.Second
)

// live is everybody who wants to be told.
type live struct {
	r *runner.Runner

	mu          sync.Mutex
	subscribers map[chan struct{}]struct{}
	stop        context.CancelFunc // of the looking; nil: nobody looks
	done        chan struct{}      // closed when that has ended
}

var errTooMany = errors.New("too many pages are open")

// subscribe returns a channel that holds a notice when something has changed, and is closed when nobody looks any more. leave it afterwards.
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
			_ = admin.Revisions(ctx, l.r, pollInterval, l.notify) // an error is told by the pages that read the same database
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
		default: // it has not dealt with the last one yet
		}
	}
}

// closeAll closes the channels of those who were left when the looking ended by itself.
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

// unsubscribe ends the looking with the last one. It returns when that holds no connection any more: the database may be closed next.
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

// stream makes an answer one that goes on: no deadline but for each write.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newStream(w http.ResponseWriter, kind string) *stream {
	s := &stream{w, http.NewResponseController(w)}
	_ = s.control.SetReadDeadline(time.Time{}) // not every writer has deadlines
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Accel-Buffering", "no") // some proxies would collect it
	return s
}

// write sends a piece at once.
func (s *stream) write(text []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write(text); err != nil {
		return err
	}
	return s.control.Flush()
}

// events is the stream of notices of a subscriber: an event rev for each change, and one to begin with.
func (h *handler) events(w http.ResponseWriter, req *http.Request) {
	subscriber, err := h.live.subscribe()
	if err != nil {
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
	first := time.After(freshFor) // for what has changed since the page was read, and before this
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
			text = []byte(": alive\n\n")
		}
		if s.write(text) != nil {
			return
		}
	}
}
