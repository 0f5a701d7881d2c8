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

// events are the subscribers of a Runner.
type events struct {
	any    atomic.Bool // there is a subscriber: nothing is made of an event otherwise
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

// tell sends an event to all subscribers that have room for it.
func (e *events) tell(event Event) {
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

func (e *engine) tellStart(a *attempt) {
	if e.r.events.any.Load() {
		e.r.events.tell(Event{Kind: EventStarted, At: now(), Task: a.task})
	}
}

func (e *engine) tellEnd(a *attempt, c jobs.Change) {
	if !e.r.events.any.Load() {
		return
	}
	t := a.task
	t.State, t.Reason, t.Error, t.Result, t.Attempt, t.Losses = c.State, c.Reason, c.Error, c.Result, c.Attempt, c.Losses
	t.ExitCode, t.Signal, t.Duration, t.OutputBytes, t.OutputTruncated = a.outcome.ExitCode, a.outcome.Signal, a.outcome.Duration,
		a.outcome.OutputBytes, a.outcome.OutputTruncated
	t.GenerationID++
	if !c.RunAt.IsZero() {
		t.RunAt = c.RunAt
	}
	if c.State.Finished() {
		t.FinishedAt = a.outcome.Finished
	}
	e.r.events.tell(Event{Kind: EventEnded, At: now(), Task: t})
}
