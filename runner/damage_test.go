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
)

// once lets the n-th commit from now reach the disk but return an error to its caller.
func (b *bubble) once(n int) {
	b.disk.Decide(func(e fault.Event) fault.Code {
		if e.Op == fault.Committed {
			if n--; n == 0 {
				return fault.IOErr
			}
		}
		return fault.OK
	})
}

func TestAFinishWhoseAnswerWasLostCountsOnce(t *testing.T) {
	fakeOnDisk(t, func(_ context.Context, b *bubble, in string) (string, error) {
		b.once(1) // the next commit writes the finish, because nothing else writes now
		return in, nil
	}, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		b.work(5 * time.Second)
		got := b.want(id, jobs.Completed, "")
		attempts, err := b.Attempts(b.Context(), got)
		if err != nil || len(attempts) != 1 || string(got.Result) != `"x"` || got.Losses != 0 || b.Runner.fenced.Load() != 0 {
			b.Errorf("%+v %+v %v, %d refused", got, attempts, err, b.Runner.fenced.Load())
		}
		queues, err := b.Queues(b.Context())
		if err != nil || len(queues) != 1 || queues[0].Ended[jobs.Completed] != 1 {
			b.Errorf("counted: %+v %v", queues, err)
		}
		b.ran(0)
	})
}

func TestAClaimWhoseAnswerWasLostIsGivenBackAtTheNextBeat(t *testing.T) {
	fakeOnDisk(t, nil, func(b *bubble) {
		b.within(65*time.Second, func() { // between two heartbeats
			b.once(2) // the first commit writes the enqueue, the second one the claim
			b.enqueue(work.With("x"))
		})
		b.work(time.Hour)
		tasks, err := b.List(b.Context(), jobs.Filter{}, Page{})
		if err != nil || len(tasks) != 1 {
			b.Fatalf("got %+v, %v; want no error, len(tasks) = 1", tasks, err)
		}
		got := b.want(tasks[0].ID, jobs.Completed, "")
		attempts, err := b.Attempts(b.Context(), got)
		// Generation 5: the task was claimed, given back, claimed again, and finished.
		if err != nil || len(attempts) != 1 || got.Losses != 0 || got.Attempt != 1 || got.GenerationID != 5 {
			b.Errorf("got %+v %+v %v; want no error, len(attempts) = 1, got.Losses = 0, got.Attempt = 1, "+
				"got.GenerationID = 5",
				got, attempts, err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.runs) != 1 || b.runs[0].at < 65*time.Second || b.runs[0].at > 76*time.Second {
			b.Errorf("got %+v; want len(b.runs) = 1, b.runs[0].at >= 65*Second, b.runs[0].at <= 76*Second", b.runs)
		}
	})
}

func TestAnEnqueueWhoseAnswerWasLostIsSafeToRepeatWithAKey(t *testing.T) {
	fakeOnDisk(t, nil, func(b *bubble) {
		b.once(1)
		if task, err := b.Enqueue(b.Context(), work.With("x", jobs.Unique("k"))); err == nil {
			b.Error("no error", task)
		}
		for range 2 {
			b.enqueue(work.With("x", jobs.Unique("k")))
		}
		if n, err := b.Count(b.Context(), jobs.Filter{}); n != 1 || err != nil {
			b.Errorf("%d tasks, %v", n, err)
		}
		b.work(time.Minute)
		b.ran(0)
	})
}

// isUnusable reports whether err is an error that ends a Work.
func isUnusable(err error) bool {
	return errors.Is(err, jobs.ErrCorrupt) || errors.Is(err, jobs.ErrPermission) || errors.Is(err, jobs.ErrReplaced)
}

// TestDamageEndsTheWork checks that a worker whose file fails opens the file once more, then cancels its attempts and ends.
func TestDamageEndsTheWork(t *testing.T) {
	for _, code := range []fault.Code{fault.IOErr, fault.Corrupt, fault.ReadOnly} {
		fakeOnDisk(t, func(ctx context.Context, b *bubble, in string) (string, error) {
			<-ctx.Done()
			if at := time.Since(b.began); at > time.Minute+20*time.Second {
				b.Errorf("stopped after %v", at)
			}
			return in, nil
		}, func(b *bubble) {
			id := b.enqueue(work.With("x"))
			opened := 0
			b.within(time.Minute, func() {
				b.disk.Decide(func(e fault.Event) fault.Code {
					if e.Op == fault.Open && !strings.HasSuffix(e.Path, "-wal") {
						opened++
					}
					if e.Op == fault.Lock {
						return code
					}
					return fault.OK
				})
			})
			err := b.Work(b.Context())
			if at := time.Since(b.began); !isUnusable(err) || at < time.Minute || at > time.Minute+20*time.Second {
				b.Errorf("code %d: after %v: %v", code, at, err)
			}
			if opened == 0 {
				b.Error("the file was not opened anew")
			}
			b.disk.Decide(nil)
			b.want(id, jobs.Running, "") // the task stays running until a worker reaps it
		})
	}
}

func TestOneErrorOfTheDiskAtATimeEndsNothing(t *testing.T) {
	fakeOnDisk(t, func(_ context.Context, b *bubble, in string) (string, error) {
		time.Sleep(10 * time.Minute)
		return in, nil
	}, func(b *bubble) {
		id := b.enqueue(work.With("x"))
		failed := map[fault.Op]time.Time{}
		var last time.Time
		b.within(30*time.Second, func() {
			b.disk.Decide(func(e fault.Event) fault.Code {
				if at := time.Now(); failed[e.Op].IsZero() && at.Sub(last) > 25*time.Second {
					failed[e.Op], last = at, at
					return fault.IOErr
				}
				return fault.OK
			})
		})
		b.work(time.Hour)
		if got := b.want(id, jobs.Completed, ""); got.Losses != 0 {
			b.Errorf("got %+v, want Losses = 0", got)
		}
		if len(failed) < 5 {
			b.Errorf("only %v failed", failed)
		}
	})
}

func TestAReplacedFileEndsTheWorkAndIsLeftAlone(t *testing.T) {
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
			fakeOnDisk(t, func(ctx context.Context, b *bubble, in string) (string, error) {
				<-ctx.Done()
				if at := time.Since(b.began); at > time.Minute+10*time.Second {
					b.Errorf("stopped after %v", at)
				}
				return in, nil
			}, func(b *bubble) {
				b.enqueue(work.With("x"))
				b.within(time.Minute, func() {
					if err := replace(b.Path()); err != nil {
						b.Error(err)
					}
				})
				if err := b.Work(b.Context()); !errors.Is(err, jobs.ErrReplaced) {
					b.Errorf("got %v; want Is(err, ErrReplaced)", err)
				}
				b.looks.Wait() // the replacement may be between two of its steps
				if _, err := b.Enqueue(b.Context(), work.With("y")); !errors.Is(err, jobs.ErrReplaced) {
					b.Errorf("got error %v of an enqueue, want jobs.ErrReplaced", err)
				}
				if text, err := os.ReadFile(b.Path()); err == nil && name == "a copy in its place" && string(text) != "restored" ||
					err != nil &&
						!errors.Is(err, fs.ErrNotExist) {
					b.Errorf("%.20q %v", text, err)
				}
			})
		})
	}
}
