package engine

import "example.com/runner/internal/gather"

// The tasks of a batch run as separate attempts. Each has its own goroutine, context, timer and lease, and its end is written for itself.
// Only the function is called once for all of them: the attempts meet in package gather. They use one slot until the last end is written.

// batch is the attempts that one call of a batch function runs.
type batch struct {
	group *gather.Group
	size  int // number of attempts that were put into the batch
	live  int // number of its attempts in Engine.running; only the loop uses it
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

// joined counts a further attempt of a batch that is in Engine.running.
func (e *Engine) joined(b *batch) {
	if b.live++; b.live > 1 {
		e.shared++
	}
}

// parted counts an attempt of a batch that is not in Engine.running any more.
func (e *Engine) parted(b *batch) {
	if b.live--; b.live > 0 {
		e.shared--
	}
}

// used returns the number of slots that are taken.
func (e *Engine) used() int { return len(e.running) - e.shared }

// freed returns one ended attempt for each slot that becomes free when the ends of all ended attempts are written.
func (e *Engine) freed() []*attempt {
	if e.shared == 0 {
		return e.unwritten
	}
	var freed []*attempt
	ended := map[*batch]int{}
	for _, a := range e.unwritten {
		if a.batch != nil {
			if ended[a.batch]++; ended[a.batch] < a.batch.live {
				continue
			}
		}
		freed = append(freed, a)
	}
	return freed
}
