package runner

import (
	"context"
	"sync"
	"time"
)

// hub tells everyone in this process who waits for a change of the database that there may be one: a commit of any process,
// noticed by the one watch that is started with the first subscriber, or an enqueue of this process, told by memory.
type hub struct {
	watch func(context.Context) (<-chan struct{}, error)

	mu      sync.Mutex
	waiting map[chan struct{}]struct{}
	stop    context.CancelFunc // of the watch; nil: it does not run
	done    sync.WaitGroup
}

// subscribe returns a channel that holds a notice when something may have changed. stop ends the subscription.
func (h *hub) subscribe(ctx context.Context) (notices <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = map[chan struct{}]struct{}{}
	}
	h.waiting[c] = struct{}{}
	if h.stop == nil {
		h.start(context.WithoutCancel(ctx))
	}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, c)
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
		select {
		case c <- struct{}{}:
		default:
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
