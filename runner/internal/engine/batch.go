package engine

import (
	"slices"

	"example.com/runner/internal/gather"
)

// The tasks of a batch run as separate attempts. Each attempt has its own goroutine, context, timer and lease, and the worker writes each
// outcome separately. But the function is called only once for all of them: package gather collects the attempts for this call. The
// attempts use one slot until the last outcome is written. Package jobs keeps one attempt until the function has returned.

// batch is the attempts that one call of a batch function runs. Only the loop uses it.
type batch struct {
	group *gather.Group
	size  int // number of attempts that were put into the batch
	live  int // number of attempts of the batch in Engine.running
}

// maxRunning returns the greatest number of attempts that may run at once.
func (o *Options) maxRunning() int {
	size := 1
	for _, h := range o.Handlers {
		size = max(size, h.BatchSize)
	}
	return o.Concurrency * size
}

// makeBatches puts the attempts of jobs that run in batches into batches. The tasks of a batch have the same job and queue, and keep their
// order.
func (e *Engine) makeBatches(attempts []*attempt) {
	type key struct{ job, queue string }
	var open map[key]*batch
	for _, a := range attempts {
		most := e.o.Handlers[a.task.Job].BatchSize
		if most < 1 {
			continue
		}
		if open == nil {
			open = map[key]*batch{}
		}
		k := key{a.task.Job, a.task.Queue}
		if open[k] == nil || open[k].size == most {
			open[k] = &batch{group: gather.NewGroup()}
		}
		a.batch = open[k]
		a.batch.size++
		a.seat = a.batch.group.NewSeat()
		a.ctx = gather.With(a.ctx, a.seat)
	}
}

// joined records that one more attempt of the batch is now in Engine.running.
func (e *Engine) joined(b *batch) {
	if b.live++; b.live > 1 {
		e.shared++
	}
}

// parted records that an attempt of a batch has left Engine.running.
func (e *Engine) parted(b *batch) {
	if b.live--; b.live > 0 {
		e.shared--
	}
}

// used returns the number of slots that are taken.
func (e *Engine) used() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) - e.shared - e.slotless
}

// freed returns the ended attempts whose slots become free with the next write, one for each slot.
func (e *Engine) freed() []*attempt {
	if !slices.ContainsFunc(e.unwritten, func(a *attempt) bool { return a.batch != nil || a.slotless }) {
		return e.unwritten
	}
	var freed []*attempt
	ended := map[*batch]int{}
	for _, a := range e.unwritten {
		if a.slotless {
			continue
		}
		if b := a.batch; b != nil {
			if ended[b]++; ended[b] < b.live {
				continue
			}
		}
		freed = append(freed, a)
	}
	return freed
}
