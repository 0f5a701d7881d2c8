package web

import (
	"context"
	"sync"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/present"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// failureCache keeps the failures that the pages have grouped. A failure in the cache never changes, because a task that fails again has a
// new failure with another time. So for each page the server reads the ids and times of all failed tasks. It reads the texts of a failure
// only if the failure is not in the cache.
type failureCache struct {
	mu    sync.Mutex
	known map[int64]present.Failure
}

// fewUnknown is the maximum number of failures that the server reads by their ids because they are not in the cache. For more failures, it
// is faster to read the latest failures in the order of their ends.
const fewUnknown = 500

// read returns failed tasks that a filter selects, the latest failure first. The argument "most" is their maximum number. If the argument
// "hide" is true, the failures have neither errors nor error lines.
func (c *failureCache) read(ctx context.Context, r *runner.Runner, filter jobs.Filter, most int, hide bool) ([]present.Failure, error) {
	marks, err := admin.FailureMarks(ctx, r, filter, most)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	isKnown := func(m admin.Mark) bool {
		f, ok := c.known[m.ID]
		return ok && f.Ended.Equal(m.At)
	}
	var unknown []int64
	for _, m := range marks {
		if !isKnown(m) {
			unknown = append(unknown, m.ID)
		}
	}
	var tasks []jobs.Task
	switch {
	case len(unknown) > fewUnknown:
		tasks, err = admin.Failures(ctx, r, filter, most)
	case len(unknown) > 0:
		tasks, err = r.List(ctx, jobs.Filter{IDs: unknown}, runner.Page{})
	}
	if err != nil {
		return nil, err
	}
	if c.known == nil || len(c.known)+len(tasks) > 3*present.MaxGrouped {
		c.known = c.knownOf(marks)
	}
	for _, t := range tasks {
		if t.State == jobs.Failed {
			if hide {
				t.Error, t.ErrorLine = "", ""
			}
			c.known[t.ID] = present.NewFailure(t)
		}
	}
	list := make([]present.Failure, 0, len(marks))
	for _, m := range marks {
		if isKnown(m) { // leave out a task that has changed since the ids were read
			list = append(list, c.known[m.ID])
		}
	}
	return list, nil
}

// knownOf returns the failures in the cache that belong to the tasks in the argument "marks", by the ids of the tasks.
func (c *failureCache) knownOf(marks []admin.Mark) map[int64]present.Failure {
	known := make(map[int64]present.Failure, len(marks))
	for _, m := range marks {
		if f, ok := c.known[m.ID]; ok {
			known[m.ID] = f
		}
	}
	return known
}
