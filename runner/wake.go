package runner

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// hub tells everyone in this process who waits for a change of the database that there may be one: a commit of any process,
// noticed by the one watch that is started with the first subscriber, or an enqueue of this process, told by memory.
type hub struct {
	watch func(ctx context.Context, told func(news bool)) error
	slow  func(bool) // makes the watch look less often, or as often as it can; nil: there is only one pace

	brief   atomic.Bool  // the watch is to last for a short time only
	awaited atomic.Int64 // entries of tasks: usually none, and nothing to do at the end of one

	mu      sync.Mutex
	full    bool                      // the worker of this process has no free slot
	all     int                       // those that wait for all that changes
	waiting map[chan struct{}]bool    // true: for all that changes; false: for what is news to workers
	tasks   map[int64][]chan struct{} // of those that wait for the end of one task
	stop    context.CancelFunc        // of the watch; nil: it does not run
	done    sync.WaitGroup
}

// subscribe returns a channel that holds a notice when something may have changed. stop ends the subscription.
func (h *hub) subscribe(ctx context.Context) (notices <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	return c, h.add(ctx, c, true)
}

// news is subscribe for what workers do: it leaves out what is known to be the daily round of others.
func (h *hub) news(ctx context.Context) (notices <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	return c, h.add(ctx, c, false)
}

func (h *hub) add(ctx context.Context, c chan struct{}, all bool) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = map[chan struct{}]bool{}
	}
	h.waiting[c] = all
	if all {
		h.all++
		h.setPace()
	}
	if h.stop == nil {
		h.start(context.WithoutCancel(ctx))
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, c)
		if all {
			h.all--
			h.setPace()
		}
	}
}

// setFull says whether the worker of this process has no free slot. Then it needs no notice at once, since it looks when one becomes free.
func (h *hub) setFull(full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full != full {
		h.full = full
		h.setPace()
	}
}

// setPace makes the watch slow when nobody needs a notice at once.
func (h *hub) setPace() {
	if h.slow != nil {
		h.slow(h.full && h.all == 0)
	}
}

// await is subscribe for who waits for the end of one task: if that comes in this process, so does the notice, without a look at the file.
func (h *hub) await(ctx context.Context, id int64) (notices <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	end := h.add(ctx, c, true)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tasks == nil {
		h.tasks = map[int64][]chan struct{}{}
	}
	h.tasks[id] = append(h.tasks[id], c)
	h.awaited.Add(1)
	return c, func() {
		end()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.awaited.Add(-1)
		if h.tasks[id] = slices.DeleteFunc(h.tasks[id], func(other chan struct{}) bool { return other == c }); len(h.tasks[id]) == 0 {
			delete(h.tasks, id)
		}
	}
}

// ended tells those that wait for the end of a task that this process has ended it.
func (h *hub) ended(id int64) {
	if h.awaited.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.tasks[id] {
		notify(c)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (h *hub) start(ctx context.Context) {
	ctx, h.stop = context.WithCancel(ctx)
	if err := h.watch(ctx, h.told); err != nil { // look every now and then instead
		ticker := time.NewTicker(time.Second)
		h.done.Go(func() {
			defer ticker.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-ticker.C:
					h.tell()
				}
			}
		})
	}
}

// tell tells everyone: there was a commit, or this process has changed something.
func (h *hub) tell() { h.told(true) }

func (h *hub) told(news bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c, all := range h.waiting {
		if news || all {
			notify(c)
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	stop := h.stop
	h.mu.Unlock()
	if stop != nil {
		stop()
	}
	h.done.Wait()
}
