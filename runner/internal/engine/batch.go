package engine

import "example.com/runner/internal/gather"

// The tasks of a batch run as separate attempts. Each attempt has its own goroutine, context, timer and lease, and the worker writes each
// outcome separately. But the function is called only once for all of them: package gather collects the attempts for this call. Together
// they have one slot. When the attempt with the slot ends, it passes the slot to another one that has not ended (passSlot). Package jobs
// keeps one attempt until the function has returned.

// batch is the attempts that one call of a batch function runs.
type batch struct {
	group   *gather.Group
	members []*attempt
}

// unended returns an attempt of the batch that has not ended, or nil.
func (b *batch) unended() *attempt {
	for _, a := range b.members {
		if !a.over.Load() {
			return a
		}
	}
	return nil
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
		if open[k] == nil || len(open[k].members) == most {
			open[k] = &batch{group: gather.NewGroup()}
		}
		a.batch = open[k]
		a.slotless = len(a.batch.members) > 0
		a.batch.members = append(a.batch.members, a)
		a.seat = a.batch.group.NewSeat()
		a.ctx = gather.With(a.ctx, a.seat)
	}
}

// used returns the number of slots that are taken.
func (e *Engine) used() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) - e.slotless
}

// freed returns the number of slots that become free with the next write.
func (e *Engine) freed() (n int) {
	for _, a := range e.unwritten {
		if !a.slotless {
			n++
		}
	}
	return n
}
