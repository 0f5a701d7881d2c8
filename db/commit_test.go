package db

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"example.com/runner/jobs"
)

// gate starts a write that stays the leader until the caller calls open, so that other writes wait for it.
func gate(t *testing.T, d *DB) (open func()) {
	t.Helper()
	began, opened, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- d.update(t.Context(), normal, func(*tx) error {
			close(began)
			<-opened
			return nil
		})
	}()
	<-began
	return func() {
		close(opened)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// gather waits until n writes are waiting.
func gather(d *DB, n int) {
	for waiting := -1; waiting != n; runtime.Gosched() {
		d.mu.Lock()
		waiting = len(d.waiting)
		d.mu.Unlock()
	}
}

func TestCallersThatWaitShareOneTransaction(t *testing.T) {
	d := openTest(t)
	open := gate(t, d)
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
	gather(d, 100)
	open()
	all.Wait()
	if len(seen) != 1 {
		t.Errorf("100 writes took %d transactions", len(seen))
	}
}

func TestBeatsGoFirstAndOthersInTheirOrder(t *testing.T) {
	d := openTest(t)
	open := gate(t, d)
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
		gather(d, i+1)
	}
	open()
	all.Wait()
	if want := []string{"beat", "a", "b", "c"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

func TestAMemberThatFailsIsAskedAgainAloneAndTheOthersToo(t *testing.T) {
	d := openTest(t)
	open := gate(t, d)
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
		gather(d, i+1)
	}
	open()
	all.Wait()
	for i, err := range errs {
		if i == 4 && err != bad || i != 4 && err != nil {
			t.Errorf("member %d: %v", i, err)
		}
		if want := map[bool]int{true: 2, false: 1}[i <= 4]; calls[i] != want { // the members after it had not run yet
			t.Errorf("member %d was asked %d times, want %d", i, calls[i], want)
		}
	}
}

func TestAMemberThatIsAloneIsAskedOnce(t *testing.T) {
	d := openTest(t)
	open := gate(t, d)
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
		gather(d, i+1)
	}
	open()
	all.Wait()
	for i := 0; i < len(calls); i += 2 {
		if calls[i] != 1 {
			t.Errorf("member %d was asked %d times", i, calls[i])
		}
	}
}

func TestAWaitingWriteThatIsRefusedByCloseIsTold(t *testing.T) {
	d := openTest(t)
	open := gate(t, d)
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	for refused := false; !refused; runtime.Gosched() {
		d.mu.Lock()
		refused = d.closed
		d.mu.Unlock()
	}
	if err := d.update(context.Background(), normal, func(*tx) error { return nil }); !errors.Is(err, jobs.ErrClosed) {
		t.Errorf("got %v; want Is(err, ErrClosed)", err)
	}
	open()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
