package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// scheduleTest is a test of schedules on fake time. It has a database and
// starts and stops workers. The test begins at midnight UTC on 2000-01-01.
type scheduleTest struct {
	*testing.T
	path string
	r    *Runner
	ran  map[string][]time.Time // ticks of the started tasks, by schedule
	hold atomic.Int64           // duration of each attempt, in ns
	stop func()
}

func testSchedules(t *testing.T, test func(c *scheduleTest)) {
	synctest.Test(t, func(t *testing.T) {
		c := &scheduleTest{T: t, path: filepath.Join(t.TempDir(), "test.db"), ran: map[string][]time.Time{}}
		c.open()
		test(c)
		c.close()
	})
}

func (c *scheduleTest) open() {
	c.Helper()
	var err error
	if c.r, err = Open(db.Alone(context.Background()), c.path, Options{Sync: SyncNormal}); err != nil {
		c.Fatal(err)
	}
	c.r.Register(jobs.Handler{Job: "note", MaxAttempts: 1, Run: func(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
		c.r.mu.Lock()
		c.ran[task.Schedule] = append(c.ran[task.Schedule], task.Tick)
		c.r.mu.Unlock()
		hold := time.Duration(c.hold.Load())
		if hold == 0 { // start no timer, because with Go 1.26 simultaneous timers of a synctest bubble crash the race detector
			return nil, nil
		}
		select {
		case <-time.After(hold):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return nil, nil
	}})
}

func (c *scheduleTest) close() {
	c.Helper()
	if c.stop != nil {
		c.stop()
	}
	if err := c.r.Close(); err != nil {
		c.Error(err)
	}
}

// work starts a worker.
func (c *scheduleTest) work() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- c.r.Work(ctx, WorkOptions{Concurrency: 8, Keep: -1,
			Lease: 10 * time.Minute}) // a long lease, because two weeks with the usual lease need 100,000 heartbeats
	}()
	c.stop = func() {
		cancel()
		c.r.abortWork()
		<-ended
		c.stop = nil
	}
}

// restartAfter stops the worker and closes the file, so nothing stays in
// memory. After the time d it starts a new worker.
func (c *scheduleTest) restartAfter(d time.Duration) {
	c.stop()
	if err := c.r.Close(); err != nil {
		c.Error(err)
	}
	time.Sleep(d)
	c.open()
	c.work()
	synctest.Wait()
}

func (c *scheduleTest) add(s jobs.Schedule) {
	c.Helper()
	if s.Spec.Job == "" {
		s.Spec = jobs.Define[struct{}]("note").With(struct{}{}, jobs.MaxAttempts(1))
	}
	if err := c.r.SetSchedule(c.Context(), s); err != nil {
		c.Fatal(err)
	}
}

func (c *scheduleTest) get(name string) jobs.Schedule {
	c.Helper()
	s, err := c.r.store.Schedule(c.Context(), name)
	if err != nil {
		c.Fatal(err)
	}
	return s
}

// tasks returns the tasks of a schedule, oldest first.
func (c *scheduleTest) tasks(name string) []jobs.Task {
	c.Helper()
	tasks, err := c.r.List(c.Context(), jobs.Filter{Schedule: name, OldestFirst: true})
	if err != nil {
		c.Fatal(err)
	}
	return tasks
}

func (c *scheduleTest) ticked(name string) []string {
	var list []string
	for _, task := range c.tasks(name) {
		if task.Tick.IsZero() {
			list = append(list, "by hand")
			continue
		}
		list = append(list, task.Tick.UTC().Format("01-02 15:04:05"))
	}
	return list
}

func (c *scheduleTest) want(what string, got, want any) {
	c.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		c.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}
