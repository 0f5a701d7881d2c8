package db

import (
	"context"
	"sync"
	"time"
)

// notices tell goroutines of this process that the database may have changed:
// the worker's loop, its scheduler and its reaper, Await and Changes.
//
// They have two sources. A watch reports the commits of any process; it starts
// with the first subscriber. Notify reports what this process has changed,
// without the watch.
//
// A notice is one value in a channel of capacity 1. So many changes in a short
// time make one notice, and a source never waits for a subscriber. Subscribers
// read the database to see what has changed.
//
// The web server doesn't subscribe. The watch reads an event for each write to
// the WAL, and the server's cost must not grow with the number of commits. It
// checks the database at its own interval (web/live.go).
type notices struct {
	noticesMu   sync.Mutex
	subscribers map[chan struct{}]bool // true if the channel gets all changes, not only those that matter to workers
	stopWatch   context.CancelFunc     // nil while no watch runs
	brief       bool                   // whether the next watch must start and end quickly
	busy        bool                   // whether the worker of this process has no free slot
	slow        bool                   // last argument of WatchSlowly
}

// briefPoll is the interval of a watch that must end quickly: the kernel needs
// up to 20 ms to end a watch with inotify.
const briefPoll = 20 * time.Millisecond

// SetBrief sets whether the next watch is needed only for a short time.
func (d *DB) SetBrief(brief bool) {
	d.noticesMu.Lock()
	defer d.noticesMu.Unlock()
	d.brief = brief
}

// Subscribe returns a channel that gets a notice after every change, until stop
// is called.
func (d *DB) Subscribe(ctx context.Context) (changed <-chan struct{}, stop func()) {
	return d.subscribe(ctx, true)
}

// SubscribeWorker is Subscribe without the changes that don't matter to
// workers: heartbeats, and the claims and outcomes of other workers, as far as
// the watch can tell them apart.
func (d *DB) SubscribeWorker(ctx context.Context) (changed <-chan struct{}, stop func()) {
	return d.subscribe(ctx, false)
}

func (d *DB) subscribe(ctx context.Context, all bool) (changed <-chan struct{}, stop func()) {
	d.noticesMu.Lock()
	defer d.noticesMu.Unlock()

	c := make(chan struct{}, 1)
	if d.subscribers == nil {
		d.subscribers = map[chan struct{}]bool{}
	}

	d.subscribers[c] = all
	d.setPace()

	if d.stopWatch == nil && !d.options.Alone {
		watching, stop := context.WithCancel(context.WithoutCancel(ctx))
		d.stopWatch = stop
		every := time.Duration(0)
		if d.brief {
			every = briefPoll
		}
		_ = d.Watch(watching, every, d.notify) // an error only after Close
	}

	return c, func() {
		d.noticesMu.Lock()
		defer d.noticesMu.Unlock()
		delete(d.subscribers, c)
		d.setPace()
	}
}

// SetBusy sets whether the worker of this process has no free slot. Its notices
// may then be late, because it reads the database anyway when a slot becomes
// free.
func (d *DB) SetBusy(busy bool) {
	d.noticesMu.Lock()
	defer d.noticesMu.Unlock()
	d.busy = busy
	d.setPace()
}

// setPace makes the watch check less often while no subscriber needs each
// notice at once. The caller holds the mutex.
func (d *DB) setPace() {
	slow := d.busy
	for _, all := range d.subscribers {
		slow = slow && !all
	}

	if slow != d.slow {
		d.slow = slow
		d.WatchSlowly(slow)
	}
}

// Notify notifies all subscribers. Call it when this process has changed
// something.
func (d *DB) Notify() { d.notify(true) }

// TasksEnded notifies the subscribers to all changes, after this process has
// written the outcomes of tasks.
func (d *DB) TasksEnded() { d.notify(false) }

func (d *DB) notify(forWorkers bool) {
	d.noticesMu.Lock()
	defer d.noticesMu.Unlock()

	for c, all := range d.subscribers {
		if !forWorkers && !all {
			continue
		}
		select {
		case c <- struct{}{}:
		default: // it has a notice already
		}
	}
}

// endWatch ends the watch, if there is one.
func (d *DB) endWatch() {
	d.noticesMu.Lock()
	defer d.noticesMu.Unlock()
	if d.stopWatch != nil {
		d.stopWatch()
	}
}
