package engine

import (
	"slices"

	"example.com/runner/internal/usercode"
)

// The tasks of a batch run as separate attempts. Each has its own goroutine,
// context, timer and lease, and the worker writes each outcome separately. But
// the function is called only once for all of them: the attempts meet in a
// usercode.Group for this call. Package jobs keeps one attempt until the
// function has returned.
//
// Together the attempts have one slot. The loop receives them one after the
// other when they have ended, and the slot goes with the last one. If it were
// free before, a cycle could claim later tasks while the loop hasn't received
// all outcomes yet. Tasks that are tried again at once would lose their places.

// batch is the attempts that one call of a bulk function runs. Only the loop
// uses it.
type batch struct {
	group *usercode.Group
	size  int        // number of attempts that were put into the batch
	live  []*attempt // those that the loop hasn't received; the first has the slot
}

// leaveBatch removes an attempt from its batch. It keeps a slot only if it's
// the last one.
func (e *Engine) leaveBatch(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()

	b := a.batch
	b.live = slices.DeleteFunc(b.live, func(other *attempt) bool { return other == a })
	if !a.slotless && len(b.live) > 0 {
		a.slotless, b.live[0].slotless = true, false
	}
}

// maxRunning returns the greatest number of attempts that may run at once.
func (o *Options) maxRunning() int {
	size := 1
	for _, h := range o.Handlers {
		size = max(size, h.BulkSize)
	}
	return o.Concurrency * size
}

// makeBatches puts the attempts of jobs that run in batches into batches. The
// tasks of a batch have the same job and queue, and keep their order.
func (e *Engine) makeBatches(attempts []*attempt) {
	type key struct{ job, queue string }
	var open map[key]*batch
	for _, a := range attempts {
		limit := e.o.Handlers[a.task.Job].BulkSize
		if limit < 1 {
			continue
		}
		if open == nil {
			open = map[key]*batch{}
		}

		k := key{a.task.Job, a.task.Queue}
		if open[k] == nil || open[k].size == limit {
			open[k] = &batch{group: usercode.NewGroup()}
		}

		a.batch = open[k]
		a.slotless = a.batch.size > 0
		a.batch.size++
		a.batch.live = append(a.batch.live, a)
		a.seat = a.batch.group.NewSeat()
		a.ctx = usercode.WithSeat(a.ctx, a.seat)
	}
}

// used returns the number of slots that are taken.
func (e *Engine) used() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) - e.slotless
}
