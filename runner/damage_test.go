package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/db/dbtest/fault"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// failCommit makes the n-th commit from now return an error to its caller,
// although the commit reaches the disk.
func (f *fakeTimeTest) failCommit(n int) {
	f.disk.Decide(func(e fault.Event) fault.Code {
		if e.Op == fault.Committed {
			if n--; n == 0 {
				return fault.IOErr
			}
		}
		return fault.OK
	})
}

func TestFinishWithLostConfirmationCountsOnce(t *testing.T) {
	onFakeTimeAndDisk(t, func(_ context.Context, f *fakeTimeTest, in string) (string, error) {
		f.failCommit(1) // nothing else writes now, so the next commit is the one that ends this attempt
		return in, nil
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		f.work(5 * time.Second)
		got := f.want(id, jobs.Completed, "")
		attempts, err := f.Runner.store.Attempts(f.Context(), got.ID)
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "attempts", attempts, 1)
		testkit.Equal(f.T, "result", string(got.Result), `"x"`)
		testkit.Equal(f.T, "losses", got.Losses, 0)
		testkit.Equal(f.T, "rejected results", f.Runner.store.Fenced.Load(), 0)
		queues, err := f.Runner.store.Queues(f.Context(), f.began, now())
		testkit.NoError(f.T, err)
		testkit.Equal(f.T, "queues", len(queues), 1)
		testkit.Equal(f.T, "completed tasks in the counters", queues["default"].Ended[jobs.Completed], 1)
		f.wantRuns(0)
	})
}

func TestClaimWithLostConfirmationIsReleasedAtNextHeartbeat(t *testing.T) {
	onFakeTimeAndDisk(t, nil, func(f *fakeTimeTest) {
		f.after(65*time.Second, func() { // 65 s is between two heartbeats
			f.failCommit(2) // the first commit is that of the enqueue, and the second one is that of the claim
			f.enqueue(work.With("x"))
		})
		f.work(time.Hour)
		tasks, err := f.List(f.Context(), jobs.Filter{})
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "tasks", tasks, 1)
		got := f.want(tasks[0].ID, jobs.Completed, "")
		attempts, err := f.Runner.store.Attempts(f.Context(), got.ID)
		// Four changes have increased the generation to 5: the task was
		// claimed, given back, claimed again and finished.
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "attempts", attempts, 1)
		testkit.Equal(f.T, "losses", got.Losses, 0)
		testkit.Equal(f.T, "attempt", got.Attempt, 1)
		testkit.Equal(f.T, "generation ID", got.GenerationID, 5)
		f.mu.Lock()
		defer f.mu.Unlock()
		testkit.Len(f.T, "runs", f.runs, 1)
		testkit.Between(f.T, "start of the first run", f.runs[0].at, 65*time.Second, 76*time.Second)
	})
}

// TestEnqueueWithLostConfirmationCanBeRepeatedWithUniqueKey calls Enqueue again
// after a call that returned an error, and once more after the task has
// completed. With jobs.Unique alone, the last call would add a second task.
func TestEnqueueWithLostConfirmationCanBeRepeatedWithUniqueKey(t *testing.T) {
	onFakeTimeAndDisk(t, nil, func(f *fakeTimeTest) {
		spec := work.With("x", jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour}))
		f.failCommit(1)
		if task, err := f.Enqueue(f.Context(), spec); err == nil {
			f.Errorf("got no error and task %d, want an error", task.ID)
		}
		for range 2 {
			f.enqueue(spec)
			f.work(time.Minute)
		}
		n, _, err := f.Count(f.Context(), jobs.Filter{})
		testkit.Equal(f.T, "tasks", n, 1)
		testkit.NoError(f.T, err)
		f.wantRuns(0)
	})
}

// isUnusable reports whether err says that the database cannot be used any
// more. Work ends with such an error.
func isUnusable(err error) bool {
	return errors.Is(err, jobs.ErrCorrupt) || errors.Is(err, jobs.ErrPermission) || errors.Is(err, jobs.ErrReplaced)
}

// TestWorkEndsWhenDiskFails makes every file lock fail. The worker then opens
// the database again, which fails, too. So the worker cancels its attempts and
// ends.
func TestWorkEndsWhenDiskFails(t *testing.T) {
	for _, code := range []fault.Code{fault.IOErr, fault.Corrupt, fault.ReadOnly} {
		onFakeTimeAndDisk(t, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
			<-ctx.Done()
			if at := time.Since(f.began); at > time.Minute+20*time.Second {
				f.Errorf("stopped after %v", at)
			}
			return in, nil
		}, func(f *fakeTimeTest) {
			id := f.enqueue(work.With("x"))
			opened := 0
			f.after(time.Minute, func() {
				f.disk.Decide(func(e fault.Event) fault.Code {
					if e.Op == fault.Open && !strings.HasSuffix(e.Path, "-wal") {
						opened++
					}
					if e.Op == fault.Lock {
						return code
					}
					return fault.OK
				})
			})
			err := f.Work(f.Context(), WorkOptions{})
			at := time.Since(f.began)
			testkit.Between(f.T, "time of the end", at, time.Minute, time.Minute+20*time.Second)
			if !isUnusable(err) {
				f.Errorf("code %d: got error %v after %v, want one of a file that cannot be used", code, err, at)
			}
			if opened == 0 {
				f.Error("got no second open of the file, want at least one")
			}
			f.disk.Decide(nil)
			f.want(id, jobs.Running, "") // the task stays in the state running until another worker takes it over
		})
	}
}

func TestWorkContinuesAfterSingleDiskErrors(t *testing.T) {
	onFakeTimeAndDisk(t, func(_ context.Context, f *fakeTimeTest, in string) (string, error) {
		time.Sleep(10 * time.Minute)
		return in, nil
	}, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		failed := map[fault.Op]time.Time{}
		var last time.Time
		f.after(30*time.Second, func() {
			f.disk.Decide(func(e fault.Event) fault.Code {
				if at := time.Now(); failed[e.Op].IsZero() && at.Sub(last) > 25*time.Second {
					failed[e.Op], last = at, at
					return fault.IOErr
				}
				return fault.OK
			})
		})
		f.work(time.Hour)
		testkit.Equal(f.T, "losses", f.want(id, jobs.Completed, "").Losses, 0)
		if len(failed) < 5 {
			f.Errorf("got failures of %v, want at least 5 operations to fail", failed)
		}
	})
}

func TestReplacedFileEndsWorkAndIsNotChanged(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"its log": func(path string) error { return os.Remove(path + "-wal") },
		"a copy in its place": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("restored"), 0o600), os.Rename(path, path+".old"),
				os.Rename(path+".new", path))
		},
		"its directory": func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			onFakeTimeAndDisk(t, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
				<-ctx.Done()
				if at := time.Since(f.began); at > time.Minute+10*time.Second {
					f.Errorf("stopped after %v", at)
				}
				return in, nil
			}, func(f *fakeTimeTest) {
				f.enqueue(work.With("x"))
				f.after(time.Minute, func() {
					if err := replace(f.store.Path()); err != nil {
						f.Error(err)
					}
				})
				testkit.ErrorIs(f.T, f.Work(f.Context(), WorkOptions{}), jobs.ErrReplaced)
				f.calls.Wait() // wait for the goroutine that replaces the file
				if _, err := f.Enqueue(f.Context(), work.With("y")); !errors.Is(err, jobs.ErrReplaced) {
					f.Errorf("got error %v of an enqueue, want jobs.ErrReplaced", err)
				}
				text, err := os.ReadFile(f.store.Path())
				if err != nil {
					testkit.ErrorIs(f.T, err, fs.ErrNotExist)
				} else if name == "a copy in its place" {
					testkit.Equal(f.T, "content of the copy", string(text), "restored")
				}
			})
		})
	}
}
