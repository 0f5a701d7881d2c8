package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/jobs"
)

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events.
const (
	EventStarted EventKind = "started" // an attempt begins
	EventEnded   EventKind = "ended"   // an attempt has ended, and its outcome is on the disk
)

// Event is the start or the end of an attempt in this process.
type Event struct {
	Kind EventKind
	At   time.Time
	// Task is the task as the worker claimed it. In an EventEnded it has the State, Reason, Error, Result and RunAt that follow from the
	// attempt.
	Task jobs.Task
	// Dropped is the number of events between the previous event and this one that were lost because the channel was full.
	Dropped int
}

// events has the subscribers of a Runner. It is the engine.Observer that Work uses.
type events struct {
	observing   atomic.Bool // whether there is a subscriber
	mu          sync.Mutex
	subscribers map[*subscriber]struct{}
	closed      bool
	onStart     atomic.Pointer[func(jobs.Task)] // function of access.OnStart; nil for none
}

type subscriber struct {
	channel chan Event
	dropped int
	stop    func() bool // cancels the call of drop at the end of the subscriber's context
}

// Events returns a channel that receives the starts and ends of the attempts in this process from now on. The channel closes when ctx ends
// or the Runner is closed. The parameter "buffer" is the capacity of the channel, at least 1. Work never waits for a slow reader. When the
// channel is full, Work drops the event, and the next event counts it in Dropped. The channel receives no events of other processes, and
// none for a task that finishes without an attempt in this process: because its worker died, it expired, a dependency failed, or it was
// cancelled while it waited. Use OnFinished for these tasks. Events is safe for use by many goroutines, and each call returns a separate
// channel.
func (r *Runner) Events(ctx context.Context, buffer int) <-chan Event {
	s := &subscriber{channel: make(chan Event, max(buffer, 1))}
	e := &r.events
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || ctx.Err() != nil {
		close(s.channel)
		return s.channel
	}
	if e.subscribers == nil {
		e.subscribers = map[*subscriber]struct{}{}
	}
	e.subscribers[s] = struct{}{}
	e.observing.Store(true)
	s.stop = context.AfterFunc(ctx, func() { e.drop(s) })
	return s.channel
}

func (e *events) drop(s *subscriber) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.subscribers[s]; ok {
		delete(e.subscribers, s)
		close(s.channel)
		e.observing.Store(len(e.subscribers) > 0)
	}
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for s := range e.subscribers {
		s.stop()
		close(s.channel)
	}
	e.subscribers = nil
	e.observing.Store(false)
}

// send sends an event to all subscribers whose channels are not full. It counts the event as dropped for the other subscribers.
func (e *events) send(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.subscribers {
		event.Dropped = s.dropped
		select {
		case s.channel <- event:
			s.dropped = 0
		default:
			s.dropped++
		}
	}
}

// Observing reports whether there is a subscriber. If there is none, the engine reports no events.
func (e *events) Observing() bool { return e.observing.Load() || e.onStart.Load() != nil }

// Started sends the start of an attempt.
func (e *events) Started(task jobs.Task) {
	if f := e.onStart.Load(); f != nil {
		(*f)(task)
	}
	e.send(Event{Kind: EventStarted, At: now(), Task: task})
}

// Ended sends the end of an attempt.
func (e *events) Ended(task jobs.Task) { e.send(Event{Kind: EventEnded, At: now(), Task: task}) }
