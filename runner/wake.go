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
	watch func(context.Context) (<-chan struct{}, error)

	awaited atomic.Int64 // entries of tasks: usually none, and nothing to do at the end of one

	mu      sync.Mutex
	waiting map[chan struct{}]struct{}
	tasks   map[int64][]chan struct{} // of those that wait for the end of one task
	stop    context.CancelFunc        // of the watch; nil: it does not run
	done    sync.WaitGroup
}

// subscribe returns a channel that holds a notice when something may have changed. stop ends the subscription.
func (h *hub) subscribe(ctx context.Context) (notices <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	return c, h.add(ctx, c)
}

func (h *hub) add(ctx context.Context, c chan struct{}) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = map[chan struct{}]struct{}{}
	}
	h.waiting[c] = struct{}{}
	if h.stop == nil {
		h.start(context.WithoutCancel(ctx))
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, c)
	}
}

// await is subscribe for who waits for the end of one task: if that comes in this process, so does the notice, without a look at the file.
func (h *hub) await(ctx context.Context, id int64) (notices <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	end := h.add(ctx, c)
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
	commits, err := h.watch(ctx)
	if err != nil { // look every now and then instead
		ticker := time.NewTicker(time.Second)
		h.done.Go(func() { <-ctx.Done(); ticker.Stop() })
		h.done.Go(func() { forward(ctx, ticker.C, h.tell) })
		return
	}
	if commits != nil {
		h.done.Go(func() { forward(ctx, commits, h.tell) })
	}
}

func forward[T any](ctx context.Context, from <-chan T, tell func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-from:
			tell()
		}
	}
}

// tell tells everyone: there was a commit, or this process has changed something.
func (h *hub) tell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.waiting {
		notify(c)
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
