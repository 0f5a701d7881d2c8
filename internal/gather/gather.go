// Package gather lets goroutines meet, so that one of them calls a function for all. A worker uses it for the attempts of a batch: each
// attempt passes its middleware on a goroutine of its own, and the function of the batch then gets all tasks in one call.
package gather

import (
	"context"
	"slices"
	"sync"
	"time"
)

// joinWait is the time for which the first member that joins waits for the others. It lets work go on if a member waits in its middleware
// until another member has ended, as with a semaphore.
const joinWait = time.Second

// Group is a set of members, each with a Seat. First the caller makes all seats. Then each member either joins, or arrives without joining.
type Group struct {
	seats int

	mu      sync.Mutex
	absent  int           // number of members that have not arrived
	waiting []entry       // members that have joined and that no call of Join has returned yet
	all     chan struct{} // closed when no member is absent
}

type entry struct {
	place int
	value any
}

// Seat is the place of one member in its group.
type Seat struct {
	group *Group
	place int
	once  sync.Once
}

// NewGroup returns a group without seats.
func NewGroup() *Group { return &Group{all: make(chan struct{})} }

// NewSeat adds a member to the group.
func (g *Group) NewSeat() *Seat {
	s := &Seat{group: g, place: g.seats}
	g.seats++
	g.absent++
	return s
}

// Arrive says that the group need not wait for this member any more. Only the first call has an effect, and Join calls Arrive.
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

// With returns a context that carries a seat.
func With(ctx context.Context, s *Seat) context.Context { return context.WithValue(ctx, seatKey{}, s) }

// Join joins the group of the seat in ctx with a value. The first member to join gets the values of all members, in the order of their
// seats, when all have arrived. The others get nil at once. Members that join later than joinWait after the first form a set of their own
// in the same way. Without a seat in ctx, Join returns the value alone.
func Join(ctx context.Context, value any) []any {
	s, _ := ctx.Value(seatKey{}).(*Seat)
	if s == nil {
		return []any{value}
	}
	g := s.group
	g.mu.Lock()
	g.waiting = append(g.waiting, entry{s.place, value})
	first := len(g.waiting) == 1
	g.mu.Unlock()
	s.Arrive()
	if !first {
		return nil
	}
	timer := time.NewTimer(joinWait)
	defer timer.Stop()
	select {
	case <-g.all:
	case <-timer.C:
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortFunc(g.waiting, func(a, b entry) int { return a.place - b.place })
	values := make([]any, len(g.waiting))
	for i, e := range g.waiting {
		values[i] = e.value
	}
	g.waiting = nil
	return values
}
