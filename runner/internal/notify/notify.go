// Package notify wakes the goroutines of a process when the database may have changed.
//
// Package runner has one Notifier per open database. The subscribers are the loop of the worker, its scheduler and its reaper, Await and
// Changes. Notices have two sources. The watch of the database (db.DB.Watch) reports the commits of any process; it starts with the first
// subscriber. Notify reports the changes that this process has made, without the watch.
//
// A notice is one value in a channel of capacity 1. So many changes in a short time make one notice, and a source never waits for a
// subscriber. A notice does not contain the change, so the subscriber reads the database.
//
// The web server does not subscribe. The watch reads an event for each write to the write-ahead log, and the cost of the web server must
// not grow with the number of commits. The web server checks the database at its own interval instead (admin.Changes).
package notify

import (
	"context"
	"sync"
	"sync/atomic"
)

// Notifier passes notices of changes to subscribers. Its methods are safe for use by many goroutines.
type Notifier struct {
	watch   func(ctx context.Context, brief bool, changed func(forWorkers bool))
	setSlow func(slow bool) // sets the interval of the watch

	brief atomic.Bool // whether the next watch must be one that starts and ends quickly (see New)

	mu          sync.Mutex
	busy        bool                   // whether the worker of this process has no free slot
	slow        bool                   // last argument of setSlow
	subscribers map[chan struct{}]bool // the value is true if the channel gets all changes, and not only those that matter to workers
	stop        context.CancelFunc     // function that ends the watch; nil while no watch runs
	closed      bool                   // whether Close was called, after which no watch starts
}

// New returns a Notifier. The function "watch" starts a watch of the database and returns. The watch calls the function "changed" after
// each commit, until ctx ends. If the parameter "brief" is true, the watch is needed only for a short time, so it should cost little to
// start and to end. The function setSlow makes the watch check less often.
func New(watch func(ctx context.Context, brief bool, changed func(forWorkers bool)), setSlow func(slow bool)) *Notifier {
	return &Notifier{watch: watch, setSlow: setSlow, subscribers: map[chan struct{}]bool{}}
}

// SetBrief sets whether the next watch is needed only for a short time.
func (n *Notifier) SetBrief(brief bool) { n.brief.Store(brief) }

// Subscribe returns a channel that receives a notice after every change. The function "stop" ends the subscription.
func (n *Notifier) Subscribe(ctx context.Context) (notices <-chan struct{}, stop func()) {
	return n.add(ctx, true)
}

// SubscribeWorker is like Subscribe, without the changes that do not matter to workers: heartbeats, and the claims and outcomes of other
// workers, as far as the watch can distinguish these changes.
func (n *Notifier) SubscribeWorker(ctx context.Context) (notices <-chan struct{}, stop func()) {
	return n.add(ctx, false)
}

func (n *Notifier) add(ctx context.Context, all bool) (notices <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscribers[c] = all
	n.setPace()
	if n.stop == nil && !n.closed {
		watching, stop := context.WithCancel(context.WithoutCancel(ctx))
		n.stop = stop
		n.watch(watching, n.brief.Load(), n.changed)
	}
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.subscribers, c)
		n.setPace()
	}
}

// SetBusy sets whether the worker of this process has no free slot. A notice for a busy worker can be late, because such a worker reads the
// database anyway when a slot becomes free.
func (n *Notifier) SetBusy(busy bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.busy = busy
	n.setPace()
}

// setPace makes the watch check less often while no subscriber needs each notice immediately. The caller holds the mutex.
func (n *Notifier) setPace() {
	slow := n.busy
	for _, all := range n.subscribers {
		slow = slow && !all
	}
	if slow != n.slow {
		n.slow = slow
		n.setSlow(slow)
	}
}

// TasksEnded notifies the subscribers to all changes at once, without the watch.
// Call it when this process has written the outcomes of tasks.
func (n *Notifier) TasksEnded() { n.changed(false) }

// Notify notifies all subscribers. Call it when this process has changed something.
func (n *Notifier) Notify() { n.changed(true) }

func (n *Notifier) changed(forWorkers bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c, all := range n.subscribers {
		if forWorkers || all {
			send(c)
		}
	}
}

// send puts a notice into a channel, unless the channel has one already.
func send(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Close ends the watch. Subscribers of a closed Notifier get the notices of this
// process only.
func (n *Notifier) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	if n.stop != nil {
		n.stop()
	}
}
