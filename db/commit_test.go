package db

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// blockWrites starts a write that does not return until the test calls release.
// Other writes wait for it.
func blockWrites(t *testing.T, d *DB) (release func()) {
	t.Helper()
	began, released, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- d.update(t.Context(), normal, func(*tx) error {
			close(began)
			<-released
			return nil
		})
	}()
	<-began
	return func() {
		close(released)
		if err := <-done; err != nil {
			t.Errorf("the write that blocks others: got error %v, want none", err)
		}
	}
}

// waitForWrites waits until n writes are waiting for the writer.
func waitForWrites(d *DB, n int) {
	for waiting := -1; waiting != n; runtime.Gosched() {
		d.mu.Lock()
		waiting = len(d.waiting)
		d.mu.Unlock()
	}
}

func TestWaitingWritesShareOneTransaction(t *testing.T) {
	d := openTest(t)
	release := blockWrites(t, d)
	var mu sync.Mutex
	seen := map[*tx]int{}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			err := d.update(t.Context(), normal, func(tx *tx) error {
				mu.Lock()
				defer mu.Unlock()
				seen[tx]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	waitForWrites(d, 100)
	release()
	all.Wait()
	if len(seen) != 1 {
		t.Errorf("got %d transactions for 100 writes, want 1", len(seen))
	}
}

func TestBeatsRunFirstAndOtherWritesInOrder(t *testing.T) {
	d := openTest(t)
	release := blockWrites(t, d)
	var order []string
	var all sync.WaitGroup
	for i, name := range []string{"a", "b", "c", "beat"} {
		submit := func(run func(*tx) error) error { return d.update(t.Context(), normal, run) }
		if name == "beat" {
			submit = func(run func(*tx) error) error { return d.beat(t.Context(), run) }
		}
		all.Go(func() {
			if err := submit(func(*tx) error { order = append(order, name); return nil }); err != nil {
				t.Error(err)
			}
		})
		waitForWrites(d, i+1)
	}
	release()
	all.Wait()
	if want := []string{"beat", "a", "b", "c"}; !slices.Equal(order, want) {
		t.Errorf("got order %v, want %v", order, want)
	}
}

func TestFailedWriteIsRepeatedAloneAndOthersToo(t *testing.T) {
	d := openTest(t)
	release := blockWrites(t, d)
	bad := errors.New("bad")
	calls := make([]int, 9)
	errs := make([]error, 9)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = d.update(t.Context(), normal, func(tx *tx) error {
				calls[i]++
				if i == 4 {
					return bad
				}
				_, err := tx.exec(touchWorker, 1, "w")
				return err
			})
		})
		waitForWrites(d, i+1)
	}
	release()
	all.Wait()
	for i, err := range errs {
		if want := map[bool]error{true: bad}[i == 4]; err != want {
			t.Errorf("write %d: got error %v, want %v", i, err, want)
		}
		// Write 4 fails, so the transaction of its group is rolled back. The
		// members then run one by one: writes 0 to 4 for the second time, and
		// the later writes for the first time.
		if want := map[bool]int{true: 2, false: 1}[i <= 4]; calls[i] != want {
			t.Errorf("write %d: got %d calls, want %d", i, calls[i], want)
		}
	}
}

// TestCallerGivesUpWhenItsContextEnds lets several callers wait for the lock of
// another process, and ends the context of one of them. That caller must return
// at once and write nothing. The other callers must still write.
func TestCallerGivesUpWhenItsContextEnds(t *testing.T) {
	const callers = 6
	for givesUp := range callers { // caller 0 is the leader and waits for the lock; the other callers wait in the queue
		d := openTest(t)
		other, err := Open(t.Context(), d.path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		release := blockWrites(t, other)
		d.options.BusyTimeout = time.Hour
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		errs, ran := make([]error, callers), make([]bool, callers)
		var all, one sync.WaitGroup
		for i := range callers {
			wait, callerCtx := &all, t.Context()
			if i == givesUp {
				wait, callerCtx = &one, ctx
			}
			wait.Go(func() {
				errs[i] = d.update(callerCtx, normal, func(*tx) error { ran[i] = true; return nil })
			})
			if i == 0 {
				for d.BusyRetries() == 0 {
					runtime.Gosched()
				}
			} else {
				waitForWrites(d, i)
			}
		}
		cancel(gone)
		one.Wait()
		release()
		all.Wait()
		for i := range callers {
			if want := map[bool]error{true: gone}[i == givesUp]; errs[i] != want || ran[i] == (i == givesUp) {
				t.Errorf("caller %d gives up: caller %d got error %v and ran %v, want error %v and ran %v", givesUp, i, errs[i],
					ran[i], want,
					i != givesUp)
			}
		}
	}
}

func TestUpdateAloneRunsOnce(t *testing.T) {
	d := openTest(t)
	release := blockWrites(t, d)
	calls := make([]int, 6)
	var all sync.WaitGroup
	for i := range calls {
		run := func(*tx) error {
			if calls[i]++; i == 5 {
				return errors.New("bad")
			}
			return nil
		}
		all.Go(func() {
			if i%2 == 0 {
				_ = d.updateAlone(t.Context(), normal, run)
			} else {
				_ = d.update(t.Context(), normal, run)
			}
		})
		waitForWrites(d, i+1)
	}
	release()
	all.Wait()
	for i := 0; i < len(calls); i += 2 {
		if calls[i] != 1 {
			t.Errorf("write %d: got %d calls, want 1", i, calls[i])
		}
	}
}

func TestNothingWatchesClosedDatabase(t *testing.T) {
	d := openTest(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	if err := d.Watch(t.Context(), time.Second, func(bool) {}); !errors.Is(err, jobs.ErrClosed) {
		t.Errorf("got error %v, want %v", err, jobs.ErrClosed)
	}
}

func TestWriteDuringCloseReturnsErrClosed(t *testing.T) {
	d := openTest(t)
	release := blockWrites(t, d)
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	for refused := false; !refused; runtime.Gosched() {
		d.mu.Lock()
		refused = d.closed
		d.mu.Unlock()
	}
	if err := d.update(context.Background(), normal, func(*tx) error { return nil }); !errors.Is(err, jobs.ErrClosed) {
		t.Errorf("got error %v, want %v", err, jobs.ErrClosed)
	}
	release()
	if err := <-closed; err != nil {
		t.Errorf("close: got error %v, want none", err)
	}
}

// TestWriteThatNoLeaderTookIsNotMade lets a write wait behind one that hangs.
// Its caller must learn that it wasn't made, and so may repeat it.
func TestWriteThatNoLeaderTookIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := openTest(t)
		release := blockWrites(t, d)
		ran := false
		err := d.update(t.Context(), normal, func(*tx) error { ran = true; return nil })
		testkit.ErrorIs(t, err, jobs.ErrBusy, "earlier writes of this program", "nothing was written")
		release()
		testkit.NoError(t, d.update(t.Context(), normal, func(*tx) error { return nil }))
		testkit.Equal(t, "whether the write was made later", ran, false)
	})
}
