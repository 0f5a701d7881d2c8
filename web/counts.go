package web

import (
	"context"
	"slices"
	"sync"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// queueCounts keeps the last counts of the queues. The database counts the pending tasks one by one, which takes 0.2 s for a million tasks.
// If a count takes so long, an overview shows the last counts while the server counts again.
type queueCounts struct {
	mu      sync.Mutex
	last    []runner.Queue
	err     error
	at      time.Time     // end of the last read; zero if its counts may no longer be shown
	took    time.Duration // duration of the last read
	reading chan struct{} // closed at the end of the read in progress; nil if there is none
}

const (
	manyPending   = 100_000               // with fewer pending tasks, the server counts them for each page
	countPatience = 20 * time.Millisecond // how long a page waits for new counts before it shows the last ones
	countPause    = 10                    // the pause between two reads is the duration of a read, multiplied by this number
	maxCountAge   = time.Minute           // counts that are older than this are not shown
)

// read returns the counts of the queues.
func (c *queueCounts) read(ctx context.Context, r *runner.Runner) ([]runner.Queue, error) {
	c.mu.Lock()
	old := time.Since(c.at)
	mayShow := old < maxCountAge && pending(c.last) >= manyPending
	if mayShow && old < countPause*c.took {
		defer c.mu.Unlock()
		return slices.Clone(c.last), nil
	}
	if c.reading == nil {
		c.reading = make(chan struct{})
		go c.count(r, c.reading)
	}
	done := c.reading
	c.mu.Unlock()
	var late <-chan time.Time
	if mayShow {
		late = time.After(countPatience)
	}
	select {
	case <-done:
	case <-late:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.last), c.err
}

// count reads the counts and closes the channel done. It has its own time limit, because several requests may wait for it.
func (c *queueCounts) count(r *runner.Runner, done chan struct{}) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), readTimeout, errSlow)
	defer cancel()
	began := time.Now()
	list, err := r.Queues(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.err, c.took = list, err, time.Since(began)
	if c.reading == done { // if another read has begun, an action has changed something since
		c.at, c.reading = time.Now(), nil
	}
	close(done)
}

// forget makes the next page wait for new counts. An action calls it, so that the user sees the result of the action.
func (c *queueCounts) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.reading = time.Time{}, nil
}

func pending(queues []runner.Queue) (n int) {
	for _, q := range queues {
		n += q.Counts[jobs.Pending]
	}
	return n
}
