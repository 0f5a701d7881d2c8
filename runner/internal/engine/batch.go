package engine

import (
	"slices"
	"time"

	"example.com/runner/internal/gather"
)

// The tasks of a batch run as separate attempts. Each attempt has its own goroutine, context, timer and lease, and the worker writes each
// outcome separately. But the function is called only once for all of them: package gather collects the attempts for this call. The
// attempts use one slot until the last outcome is written and the function has returned.

// batch is the attempts that one call of a batch function runs. Only the loop uses the field "size" and the fields after it.
type batch struct {
	group *gather.Group
	job   string
	queue string
	size  int // number of attempts that were put into the batch
	live  int // number of attempts of the batch in Engine.running

	watched  bool        // whether the batch goes to the channel Engine.returned when its function returns
	returned bool        // whether the function has returned, or has lost its slot because of ReleaseStuck or a shutdown
	stuck    *time.Timer // timer of watchBatch; nil while an attempt of the batch runs, or if StuckAfter is negative
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
			open[k] = &batch{group: gather.NewGroup(), job: a.task.Job, queue: a.task.Queue}
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
func (e *Engine) parted(a *attempt) {
	b := a.batch
	b.returned = b.returned || a.leaked.Load()
	if b.live--; b.live > 0 {
		e.shared--
	} else if !e.hasReturned(b) {
		e.held[b] = true
		e.watchBatch(b)
	}
}

// hasReturned reports whether the function of a batch has returned. If it has not, the loop gets the batch from the channel Engine.returned
// later. Call hasReturned only after all attempts of the batch have ended.
func (e *Engine) hasReturned(b *batch) bool {
	if !b.returned && !b.watched {
		b.watched = true
		b.returned = b.group.Idle(func() {
			select {
			case e.returned <- b:
			case <-e.stopped.Done():
			}
		})
	}
	return b.returned
}

// freeSlot frees the slot of a batch when its function has returned. By then, the outcomes of all its attempts are written.
func (e *Engine) freeSlot(b *batch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b.returned, e.claimMore = true, true
	e.drop(b)
}

// drop removes a batch from e.held.
func (e *Engine) drop(b *batch) {
	if b.stuck != nil {
		b.stuck.Stop()
	}
	delete(e.held, b)
}

// used returns the number of slots that are taken.
func (e *Engine) used() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) - e.shared + len(e.held) - e.slotless
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
			b.returned = b.returned || a.leaked.Load()
			if ended[b]++; ended[b] < b.live || !e.hasReturned(b) {
				continue
			}
		}
		freed = append(freed, a)
	}
	return freed
}

// stopBatches ends the contexts of all batch functions. The caller holds e.mu.
func (e *Engine) stopBatches(cause error) {
	for _, a := range e.running {
		if a.batch != nil {
			a.batch.group.Stop(cause)
		}
	}
	for b := range e.held {
		b.group.Stop(cause)
	}
}

// abandonBatches gives up the batch functions that do not return. The caller holds e.mu.
func (e *Engine) abandonBatches() {
	for _, a := range e.running {
		if a.batch != nil {
			a.batch.returned = true
		}
	}
	for b := range e.held {
		e.log.Warn("the function of a batch does not return", "job", b.job, "queue", b.queue)
		e.drop(b)
	}
}
