package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/jobs"
)

// EventKind says what an Event tells.
type EventKind string

// The kinds of events.
const (
	EventStarted EventKind = "started" // an attempt begins
	EventEnded   EventKind = "ended"   // an attempt has ended, and that is on the disk
)

// Event is something that Work has done, in this process.
type Event struct {
	Kind EventKind
	At   time.Time
	// Task is as it was claimed; once ended, with the State, Reason, Error, Result and RunAt that followed.
	Task jobs.Task
	// Dropped is how many events came between the one before and this one, and were lost because nobody took them in time.
	Dropped int
}

// events are the subscribers of a Runner. It is the engine.Observer of its Work.
type events struct {
	any    atomic.Bool // whether there is a subscriber
	mu     sync.Mutex
	to     map[*subscriber]struct{}
	closed bool
}

type subscriber struct {
	channel chan Event
	dropped int
}

// Events returns a channel of what Work does in this process from now on, until ctx ends or the Runner is closed, which closes the
// channel. It holds up to buffer events (at least 1) that nobody has taken yet; what comes when it is full is dropped, and counted in
// the Dropped of the next event: a slow reader never makes Work wait. What other processes do is not told here: see Changes, Await and
// List. It is safe for use by many goroutines; each call is a subscription of its own.
func (r *Runner) Events(ctx context.Context, buffer int) <-chan Event {
	s := &subscriber{channel: make(chan Event, max(buffer, 1))}
	e := &r.events
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || ctx.Err() != nil {
		close(s.channel)
		return s.channel
	}
	if e.to == nil {
		e.to = map[*subscriber]struct{}{}
	}
	e.to[s] = struct{}{}
	e.any.Store(true)
	context.AfterFunc(ctx, func() { e.drop(s) })
	return s.channel
}

func (e *events) drop(s *subscriber) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.to[s]; ok {
		delete(e.to, s)
		close(s.channel)
		e.any.Store(len(e.to) > 0)
	}
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for s := range e.to {
		close(s.channel)
	}
	e.to = nil
	e.any.Store(false)
}

// send sends an event to all subscribers that have room for it.
func (e *events) send(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.to {
		event.Dropped = s.dropped
		select {
		case s.channel <- event:
			s.dropped = 0
		default:
			s.dropped++
		}
	}
}

// Observing reports whether there is a subscriber. Otherwise the engine makes no events.
func (e *events) Observing() bool { return e.any.Load() }

// Started sends the start of an attempt.
func (e *events) Started(task jobs.Task) { e.send(Event{Kind: EventStarted, At: now(), Task: task}) }

// Ended sends the end of an attempt.
func (e *events) Ended(task jobs.Task) { e.send(Event{Kind: EventEnded, At: now(), Task: task}) }
