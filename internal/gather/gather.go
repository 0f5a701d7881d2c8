// Package gather lets several goroutines meet, so that one of them calls a function for all of them. A worker uses it for jobs whose
// function handles a batch of tasks: the attempt of each task runs its middleware in its own goroutine, and one call of the function then
// gets all tasks.
package gather

import (
	"context"
	"sync"
	"time"
)

// joinWait is how long the first member that joins waits for the others. Without this limit, members could wait for each other for ever:
// the middleware of a member, such as a semaphore, may wait until another member has ended.
const joinWait = time.Second

// Group is a set of members that want to call a function together. The caller first makes a Seat for each member. Each member then calls
// Join, or only Arrive if it does not take part.
type Group struct {
	seats []*Seat

	mu     sync.Mutex
	absent int           // number of members that have called neither Join nor Arrive
	calls  bool          // whether a member that has joined waits to call the function
	all    chan struct{} // closed when every member has called Join or Arrive
}

// Seat is the place of one member in a group. The member uses its Seat to call Join or Arrive.
type Seat struct {
	group *Group
	once  sync.Once
	value any // of a member that has joined and is in no call yet; otherwise nil
}

// NewGroup returns a group without members.
func NewGroup() *Group { return &Group{all: make(chan struct{})} }

// NewSeat adds a member to the group.
func (g *Group) NewSeat() *Seat {
	s := &Seat{group: g}
	g.seats = append(g.seats, s)
	g.absent++
	return s
}

// Arrive tells the group not to wait for this member any more. Only the first call has an effect. Join calls Arrive.
func (s *Seat) Arrive() {
	s.once.Do(func() {
		s.group.mu.Lock()
		defer s.group.mu.Unlock()
		if s.group.absent--; s.group.absent == 0 {
			close(s.group.all)
		}
	})
}

type seatKey struct{}

// With returns a context that contains a seat.
func With(ctx context.Context, s *Seat) context.Context { return context.WithValue(ctx, seatKey{}, s) }

// Join adds a value, which isn't nil, to the group of the seat in ctx. The first
// member that joins waits until all members have arrived, but at most for
// joinWait. It gets the values of all members that have joined, in the order of
// their seats, for one call of the function. The other members get nil at once. A
// member that joins later is the first member of a further call. Without a seat
// in ctx, Join returns only this value.
func Join[T any](ctx context.Context, value T) (values []T) {
	s, _ := ctx.Value(seatKey{}).(*Seat)
	if s == nil {
		return []T{value}
	}
	g := s.group
	g.mu.Lock()
	s.value = value
	first := !g.calls
	g.calls = true
	g.mu.Unlock()
	s.Arrive()
	if !first {
		return nil
	}
	select {
	case <-g.all:
	case <-time.After(joinWait):
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls = false
	for _, seat := range g.seats {
		if seat.value != nil {
			values = append(values, seat.value.(T))
			seat.value = nil
		}
	}
	return values
}

// Decided is the error of a task whose outcome was set while its context had not
// ended. A later timeout, cancellation or shutdown doesn't change the outcome.
type Decided struct{ Err error }

func (d Decided) Error() string { return d.Err.Error() }

func (d Decided) Unwrap() error { return d.Err }
