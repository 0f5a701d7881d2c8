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
	calls   int           // number of calls that have not ended
	idle    func()        // called when the last call ends; nil if nobody waits for that

	ctx    context.Context // context of the calls
	cancel context.CancelCauseFunc
}

// Call is a set of members for which a function is called once. The caller of the function calls End when the function has returned.
type Call struct {
	Values []any // values in the order of the seats
	group  *Group
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
func NewGroup() *Group {
	g := &Group{all: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	return g
}

// Stop ends the contexts of all calls of the group.
func (g *Group) Stop(cause error) { g.cancel(cause) }

// Idle reports whether no call of the group runs. Otherwise it calls f when the last call ends.
func (g *Group) Idle(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls == 0 {
		return true
	}
	g.idle = f
	return false
}

// Context returns a context that ends when someone stops the group.
func (c *Call) Context() context.Context { return c.group.ctx }

// End says that the function of the call has returned.
func (c *Call) End() {
	g := c.group
	g.mu.Lock()
	g.calls--
	idle := g.idle
	if g.calls > 0 {
		idle = nil
	}
	g.mu.Unlock()
	if idle != nil {
		idle()
	}
}

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

// Join joins the group of the seat in ctx with a value. The first member to join gets a call with the values of all members when all have
// arrived. The others get nil at once. Members that join later than joinWait after the first form a call of their own in the same way.
// Without a seat in ctx, Join returns a call with the value alone.
func Join(ctx context.Context, value any) *Call {
	s, _ := ctx.Value(seatKey{}).(*Seat)
	if s == nil {
		s = NewGroup().NewSeat()
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
	call := &Call{Values: make([]any, len(g.waiting)), group: g}
	for i, e := range g.waiting {
		call.Values[i] = e.value
	}
	g.waiting = nil
	g.calls++
	return call
}
