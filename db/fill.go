package db

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The tasks of a batch share a slot: the first one takes a free slot, and the
// next ones of its job and queue join it until the batch is full. A job may let
// its tasks wait until a batch is full (ClaimJob.Wait). A rate limit counts a
// batch as one start.

// part identifies the tasks of one job in one queue.
type part struct{ queue, job string }

// readFilling finds the jobs whose tasks wait until a batch is full, and stores
// in g.filling how many tasks their full batches have. It returns when the
// first of the waiting tasks stops waiting, or zero.
//
// For each job in a queue it reads the first pending tasks, at most as many as
// fill the batches of all free slots. Those after the last full batch wait,
// until the oldest of them has waited for ClaimJob.Wait.
func (t *tx) readFilling(g *admission, c *claimer, queues []string, ask Claim, now time.Time) (next time.Time, err error) {
	for i, job := range c.jobs {
		if job.Wait <= 0 || job.Batch <= 1 {
			continue
		}

		one := make([]ClaimJob, len(c.jobs)) // the other names are empty
		one[i] = job
		for _, queue := range queues {
			if g.isPaused(queue) {
				continue
			}

			var first []candidate
			if err := t.list(&first, c.peek, append(c.jobArgs(queue, one, 1), int64(ask.Free*job.Batch))...); err != nil {
				return next, err
			}

			rest := first[len(first)-len(first)%job.Batch:]
			if len(rest) == 0 {
				continue
			}

			oldest := slices.MinFunc(rest, func(a, b candidate) int { return cmp.Compare(a.RunAt, b.RunAt) })
			until := time.UnixMilli(oldest.RunAt).Add(job.Wait)
			if !until.After(now) {
				continue
			}
			if g.filling == nil {
				g.restricts, g.filling = true, map[part]int{}
			}

			g.filling[part{queue, job.Job}] = len(first) - len(rest)
			if next.IsZero() || until.Before(next) {
				next = until
			}
		}
	}
	return next, nil
}

// slots are the free slots of a claim in a queue.
type slots struct {
	g     *admission
	c     *claimer
	queue string
	free  int
	room  map[string]int // by job: how many more tasks the batch that was begun last takes
}

// admit returns the jobs of which the claim may take tasks now, with empty
// names in place of the others, and how many tasks it surely has slots for.
// simple says that it may take the first ones, whatever their job.
func (s *slots) admit() (admitted []ClaimJob, limit int, simple bool) {
	free := max(min(s.free, s.g.capacity(AllTarget, ""), s.g.capacity(QueueTarget, s.queue)), 0)
	admitted = slices.Clone(s.c.jobs)
	n, single, least := 0, true, math.MaxInt
	for i, job := range admitted {
		begins := free > 0 && s.g.admits(s.queue, job.Job, false)
		room := s.room[job.Job]
		if !begins && (room == 0 || !s.g.admits(s.queue, job.Job, true)) {
			admitted[i].Job = ""
			continue
		}

		n, limit = n+1, limit+room
		single = single && job.Batch <= 1
		if begins {
			least = min(least, max(job.Batch, 1))
		}
	}

	if least < math.MaxInt {
		limit += free * least
	}

	simple = single || n == 1 && !s.g.restricts
	for _, job := range admitted {
		simple = simple && (job.Job == "" || s.g.capacityOf(s.queue, job.Job) >= limit)
	}

	return admitted, limit, simple
}

// take gives a task a slot, or a place in the slot of its batch. It returns
// false if there is none, or if a limit allows no further task.
func (s *slots) take(job string) bool {
	joins := s.room[job] > 0
	if !joins && s.free == 0 || !s.g.admits(s.queue, job, joins) {
		return false
	}
	if joins {
		s.room[job]--
	} else {
		s.free--
		s.room[job] = max(s.c.job(job).Batch, 1) - 1
	}

	s.g.count(s.queue, job, joins)
	return true
}
