package web

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/runner"
)

// queueCounts keeps the last counts of the queues. The database counts the pending tasks one by one, which takes 0.1 s for a million tasks.
// If a count takes so long, an overview shows the last count of the pending tasks with its age while the server counts again. The other
// numbers are always new.
type queueCounts struct {
	mu      sync.Mutex
	last    []runner.Queue
	pending []admin.PendingCount // last count of the pending tasks, by queue and job, corrected after each action
	total   int                  // number of tasks in the field "pending"
	err     error
	at      time.Time     // end of the last read; zero if there was none
	fresh   bool          // whether no action has changed tasks since the last read
	took    time.Duration // duration of the last read
	reading chan struct{} // channel that is closed at the end of the read in progress; nil if there is none
	changed func()        // function to call when a read of the counts has ended and "behind" is set
	behind  bool          // whether a page was sent without waiting for the read in progress
}

const (
	manyPending   = 100_000               // with fewer pending tasks, the server counts them for each page
	countPatience = 10 * time.Millisecond // how long a page waits for new counts before it shows the last counts
	countPause    = 10                    // the pause between two reads is the duration of a read, multiplied by this number
	oldCount      = 5 * time.Second       // if a count is older, the page shows its age
)

// read returns the counts of the queues. The result "age" is the age of the count of the pending tasks, or 0 if it is at most oldCount.
func (c *queueCounts) read(ctx context.Context, r *runner.Runner) (queues []runner.Queue, age time.Duration, err error) {
	c.mu.Lock()
	many := c.total >= manyPending
	if many && c.fresh && time.Since(c.at) < countPause*c.took {
		defer c.mu.Unlock()
		return slices.Clone(c.last), 0, nil
	}
	done := c.startLocked(r)
	c.mu.Unlock()
	var late <-chan time.Time
	if many {
		late = time.After(countPatience)
	}
	select {
	case <-done:
	case <-late:
		return c.older(ctx, r, done)
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.last), 0, c.err
}

// older returns the counts of the queues. All of them are new except the numbers of pending tasks, which are from the last count. It also
// returns the age of the last count, or 0 if the age is at most oldCount.
func (c *queueCounts) older(ctx context.Context, r *runner.Runner, done chan struct{}) ([]runner.Queue, time.Duration, error) {
	c.mu.Lock()
	pending, age := slices.Clone(c.pending), time.Since(c.at)
	c.behind = c.behind || c.reading == done
	c.mu.Unlock()
	if age <= oldCount {
		age = 0
	}
	queues, err := admin.QueuesWith(ctx, r, pending)
	return queues, age, err
}

// start starts a read unless one is in progress. It returns a channel that is closed at the end of the read.
func (c *queueCounts) start(r *runner.Runner) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.startLocked(r)
}

func (c *queueCounts) startLocked(r *runner.Runner) chan struct{} {
	if c.reading == nil {
		c.reading = make(chan struct{})
		go c.count(r, c.reading)
	}
	return c.reading
}

// count reads the counts and then closes the channel "done". The read has its own time limit, because several requests may wait for it.
func (c *queueCounts) count(r *runner.Runner, done chan struct{}) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), readTimeout, errSlow)
	defer cancel()
	began := time.Now()
	list, err := r.Queues(ctx)
	c.mu.Lock()
	current := c.reading == done // false if an action has changed tasks during this read; a later read then counts the tasks again
	if current || c.last == nil {
		c.last, c.err, c.took = list, err, time.Since(began)
		c.pending, c.total = pendingCounts(list)
	}
	behind := false
	if current {
		c.at, c.fresh, c.reading = time.Now(), true, nil
		behind, c.behind = c.behind, false
	}
	close(done)
	c.mu.Unlock()
	if behind && c.changed != nil {
		c.changed()
	}
}

// pendingCounts returns the numbers of pending tasks by queue and job, and their sum.
func pendingCounts(queues []runner.Queue) (list []admin.PendingCount, total int) {
	for _, q := range queues {
		for job, n := range q.Jobs {
			list, total = append(list, admin.PendingCount{Queue: q.Queue, Job: job, N: n}), total+n
		}
	}
	return list, total
}

// forget makes the next page count again. An action calls it, so that the user sees the result of the action.
func (c *queueCounts) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh, c.reading = false, nil
}

// The method "many" reports whether so many tasks are pending that counting them is slow. Then the pages may show an older count.
func (c *queueCounts) many() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total >= manyPending
}

// add changes the last count of the pending tasks by the counts in the argument "list". It adds them if the argument "sign" is 1, and
// subtracts them if it is -1.
func (c *queueCounts) add(list []admin.PendingCount, sign int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range list {
		i := slices.IndexFunc(c.pending, func(q admin.PendingCount) bool { return q.Queue == p.Queue && q.Job == p.Job })
		if i < 0 {
			c.pending = append(c.pending, admin.PendingCount{Queue: p.Queue, Job: p.Job})
			i = len(c.pending) - 1
		}
		n := max(c.pending[i].N+sign*p.N, 0)
		c.total += n - c.pending[i].N
		c.pending[i].N = n
	}
}

// The method "around" calls the function "do", which changes the tasks with these ids. It counts the pending tasks among them before and
// after the call, and adds the difference to the last count.
func (c *queueCounts) around(ctx context.Context, r *runner.Runner, ids []int64, do func() error) error {
	if !c.many() {
		return do()
	}
	before, err := admin.PendingAmong(ctx, r, ids)
	if err != nil {
		return err
	}
	done := do()
	after, err := admin.PendingAmong(ctx, r, ids)
	if err == nil {
		c.forget() // discard a read that began before the change, because it would replace the corrected count
		c.add(before, -1)
		c.add(after, 1)
	}
	return cmp.Or(done, err)
}
