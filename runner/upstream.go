package runner

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"example.com/runner/jobs"
)

// Upstream returns the tasks that the task running with ctx waited for (jobs.After, jobs.AfterAny), by id, with their states and
// results: f.Result(task, nil) of a ResultFunc reads one. Those that were deleted since are missing. Outside of a running task it
// is an error of kind jobs.ErrInvalid.
func Upstream(ctx context.Context) ([]jobs.Task, error) {
	a := attemptFrom(ctx)
	if a == nil {
		return nil, fmt.Errorf("%w: Upstream is for the context of a running task", jobs.ErrInvalid)
	}
	if !a.task.Depends {
		return nil, nil
	}
	var tasks []jobs.Task
	err := a.e.r.store.Upstream(ctx, a.task.ID, func(t jobs.Task) error { tasks = append(tasks, t); return nil })
	return tasks, err
}

// upstreamPath is the file of $RUNNER_UPSTREAM: a name that only this attempt has, in a directory of this user alone.
func (c *command) upstreamPath() string {
	return filepath.Join(c.e.r.store.Dir(), fmt.Sprintf("upstream-%d-%d.json", c.task.ID, c.task.GenerationID))
}

// writeUpstream leaves the results of the tasks that this one waited for in a file: a JSON object of ids. It is written row by row,
// as results may be large and many. remove is never nil.
func (c *command) writeUpstream() (remove func(), err error) {
	if !c.task.Depends {
		return func() {}, nil
	}
	path := c.upstreamPath()
	remove = func() { _ = os.Remove(path) }
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|openNoFollow, 0o600)
	if err != nil {
		return remove, err
	}
	out := bufio.NewWriter(file)
	between := "{"
	err = c.e.r.store.Upstream(c.ctx, c.task.ID, func(t jobs.Task) error {
		result := []byte(t.Result)
		if result == nil {
			result = []byte("null")
		}
		_, err := out.WriteString(between + `"` + strconv.FormatInt(t.ID, 10) + `":`)
		if err == nil {
			_, err = out.Write(result)
		}
		between = ","
		return err
	})
	if between == "{" {
		between = "{}"
	} else {
		between = "}"
	}
	_, endErr := out.WriteString(between + "\n")
	return remove, errors.Join(err, endErr, out.Flush(), file.Close())
}
