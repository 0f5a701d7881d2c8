package usercode

import (
	"context"
	"sync"
	"time"
)

// joinWait is how long the first member that joins waits for the others.
// Without it, members could wait for each other forever: the middleware of one,
// such as a semaphore, may wait until another has ended.
const joinWait = time.Second

// Group lets goroutines meet, so that one of them calls a function for all.
// Each task of a batch runs its middleware in a goroutine of its own, and then
// one call of the bulk function gets them all.
type Group struct {
	seats []*Seat

	mu     sync.Mutex
	absent int           // members that have called neither Join nor Arrive
	calls  bool          // whether a member that has joined waits to call the function
	all    chan struct{} // closed when every member has called Join or Arrive
}

// Seat is one member's place in a group.
type Seat struct {
	group *Group
	once  sync.Once
	value any // of a member that has joined and is in no call yet; otherwise nil
}

// NewGroup returns a group without members.
func NewGroup() *Group { return &Group{all: make(chan struct{})} }

// NewSeat adds a member. All seats exist before the first member joins.
func (g *Group) NewSeat() *Seat {
	s := &Seat{group: g}
	g.seats = append(g.seats, s)
	g.absent++

	return s
}

// Arrive tells the group not to wait for this member. Join calls it, too; only
// the first call has an effect.
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

// WithSeat returns a context that contains a seat.
func WithSeat(ctx context.Context, s *Seat) context.Context {
	return context.WithValue(ctx, seatKey{}, s)
}

// Join adds a value, which isn't nil, to the group of the seat in ctx. The
// first member that joins waits until all have arrived (at most joinWait), and
// gets the values of all that have joined, in the order of their seats, for one
// call of the function. The others get nil at once. A member that comes later
// is the first one of a further call. Without a seat in ctx, Join returns value
// alone.
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

// Decided is the error of a task whose outcome was set while its context had
// not ended. A later timeout, cancellation or shutdown doesn't change the
// outcome.
type Decided struct{ Err error }

func (d Decided) Error() string { return d.Err.Error() }

func (d Decided) Unwrap() error { return d.Err }
