package dbtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// inParallel calls do n times in parallel and returns the errors.
func inParallel(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errs
}

// lockWrites holds the write lock from another connection until the returned
// function is called.
func (s *store) lockWrites() (release func()) {
	s.Helper()
	conn, err := s.raw.Conn(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if _, err := conn.ExecContext(s.Context(), s.statement("BEGIN IMMEDIATE")); err != nil {
		s.Fatal(err)
	}

	return func() {
		if _, err := conn.ExecContext(s.Context(), "ROLLBACK"); err != nil {
			s.Error(err)
		}
		conn.Close()
	}
}

var commits = group{
	"a write that fails in a group affects and informs its caller only": func(s *store) {
		bad := func(i int) bool { return i%7 == 3 }
		release := s.lockWrites() // the inserts wait until the lock is free, so they share a commit
		done := make(chan []error)
		go func() {
			done <- inParallel(100, func(i int) error {
				spec := commandSpec(jobs.Label(fmt.Sprint(i)))
				if bad(i) {
					spec.MaxLosses = -1 // a CHECK constraint rejects this value
				}
				_, err := s.Insert(s.Context(), []jobs.Spec{spec, commandSpec()}, s.now)
				return err
			})
		}()
		release()
		want := 0
		for i, err := range <-done {
			if (err != nil) != bad(i) {
				s.Errorf("member %d: got an error %v, want %v", i, (err != nil), bad(i))
			}
			if !bad(i) {
				want += 2
			}
			if found := len(s.list(jobs.Filter{Label: fmt.Sprint(i)})); found == 1 == bad(i) {
				s.Errorf("member %d: got %d tasks, failed %v; want one task unless it failed", i, found, bad(i))
			}
		}

		if n := s.number(`SELECT count(*) FROM tasks`); n != int64(want) {
			s.Errorf("got %d tasks, want %d", n, want)
		}
	},
	"long sequences and short writes run at the same time": func(s *store) {
		errs := inParallel(60, func(i int) error {
			if i%20 != 0 {
				_, err := s.Insert(s.Context(), []jobs.Spec{commandSpec()}, s.now)
				return err
			}
			specs := make([]jobs.Spec, 100)
			for j := range specs {
				specs[j] = commandSpec()
			}

			_, err := s.InsertSeq(s.Context(), specSeq(specs, nil), s.now)
			return err
		})
		if err := errors.Join(errs...); err != nil || s.number(`SELECT count(*) FROM tasks`) != 57+300 {
			s.Errorf("got error %v, tasks %v; want nil, %v", err, s.number(`SELECT count(*) FROM tasks`), 57+300)
		}
	},
	"a sequence that fails does not affect other writes": func(s *store) {
		end := errors.New("line 9")
		errs := inParallel(40, func(i int) error {
			if i%10 != 0 {
				_, err := s.Insert(s.Context(), []jobs.Spec{commandSpec()}, s.now)
				return err
			}
			if _, err := s.InsertSeq(s.Context(), specSeq([]jobs.Spec{commandSpec(), commandSpec()}, end), s.now); err != end {
				return fmt.Errorf("the sequence returned %w", err)
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil || s.number(`SELECT count(*) FROM tasks`) != 36 {
			s.Errorf("got error %v, tasks %v; want nil, 36", err, s.number(`SELECT count(*) FROM tasks`))
		}
	},
	"a sequence that panics does so in its caller, and other writes continue": func(s *store) {
		errs := inParallel(20, func(i int) (err error) {
			if i%5 != 0 {
				return errorOf(s.Insert(s.Context(), []jobs.Spec{commandSpec()}, s.now))
			}
			defer func() {
				if p := recover(); p != "boom" {
					err = fmt.Errorf("recovered %v", p)
				}
			}()

			return errorOf(s.InsertSeq(s.Context(), func(yield func(jobs.Spec, error) bool) {
				yield(commandSpec(), nil)
				panic("boom")
			}, s.now))
		})
		if err := errors.Join(errs...); err != nil || s.number(`SELECT count(*) FROM tasks`) != 16 {
			s.Errorf("got error %v, tasks %v; want nil, 16", err, s.number(`SELECT count(*) FROM tasks`))
		}
	},
	"runtime.Goexit in a sequence ends the goroutine of its caller, and other writes continue": func(s *store) {
		ended := 0
		var mu sync.Mutex
		errs := inParallel(20, func(i int) error {
			if i%5 != 0 {
				return errorOf(s.Insert(s.Context(), []jobs.Spec{commandSpec()}, s.now))
			}

			exited := make(chan bool)
			go func() {
				returned := false
				defer func() { exited <- !returned }()
				_, _ = s.InsertSeq(s.Context(), func(yield func(jobs.Spec, error) bool) {
					yield(commandSpec(), nil)
					runtime.Goexit()
				}, s.now)
				returned = true
			}()
			if <-exited {
				mu.Lock()
				ended++
				mu.Unlock()
			}

			return nil
		})
		if err := errors.Join(errs...); err != nil || s.number(`SELECT count(*) FROM tasks`) != 16 || ended != 4 {
			s.Errorf("got error %v, tasks %v, ended %v; want nil, 16, 4", err, s.number(`SELECT count(*) FROM tasks`), ended)
		}
	},
	"an ended context writes nothing": func(s *store) {
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(cause)
		if _, err := s.Insert(ctx, []jobs.Spec{commandSpec()}, s.now); err != cause {
			s.Errorf("got %v, want %v", err, cause)
		}
		if _, err := s.Apply(ctx, []int64{1}, db.Cancel("", false, s.now)); err != cause {
			s.Errorf("got %v, want %v", err, cause)
		}
		if n := s.number(`SELECT count(*) FROM tasks`); n != 0 {
			s.Errorf("got %v, want 0", n)
		}
	},
	"the end of a context does not stop a write that has begun": func(s *store) {
		ctx, cancel := context.WithCancel(s.Context())
		_, err := s.InsertSeq(ctx, func(yield func(jobs.Spec, error) bool) {
			if yield(commandSpec(), nil) {
				cancel() // the insert has received its last task, so its next step is the commit
			}
		}, s.now)
		if err != nil || s.number(`SELECT count(*) FROM tasks`) != 1 {
			s.Errorf("got error %v, tasks %v; want nil, 1", err, s.number(`SELECT count(*) FROM tasks`))
		}
	},
	"after Close every call returns ErrClosed": func(s *store) {
		d := s.open(db.Options{})
		w := must(d.Register(s.Context(), db.WorkerInfo{Lease: lease, StartedAt: s.now}, []db.ClaimJob{{Job: "f"}}))(s)
		for range 2 {
			if err := d.Close(); err != nil {
				s.Error(err)
			}
		}

		for name, err := range map[string]error{
			"insert":   errorOf(d.Insert(s.Context(), []jobs.Spec{commandSpec()}, s.now)),
			"sequence": errorOf(d.InsertSeq(s.Context(), specSeq(nil, nil), s.now)),
			"cycle":    errorOf(w.Cycle(s.Context(), db.Cycle{Now: s.now})),
			"beat":     errorOf(w.Beat(s.Context(), nil, lease, s.now)),
			"cancel":   errorOf(d.Apply(s.Context(), []int64{1}, db.Cancel("", false, s.now))),
			"end":      w.End(s.Context(), s.now),
			"list":     errorOf(d.List(s.Context(), jobs.Filter{})),
			"attempts": errorOf(d.Attempts(s.Context(), 1)),
			"queues":   errorOf(d.Queues(s.Context(), s.now, s.now)),
			"owned":    errorOf(w.Owned(s.Context())),
			"latest":   errorOf(d.MaxTimestamp(s.Context())),
			"input":    errorOf(d.Input(s.Context(), 1)),
		} {
			if !errors.Is(err, jobs.ErrClosed) {
				s.Errorf("%s: got %v, want error %v", name, err, jobs.ErrClosed)
			}
		}
	},
	"Close waits for writes in progress, and each returns its true result": func(s *store) {
		d := s.open(db.Options{Normal: true})
		began := make(chan struct{}, 64)
		done := make(chan []error)
		go func() {
			done <- inParallel(64, func(int) error {
				began <- struct{}{}
				return errorOf(d.Insert(s.Context(), []jobs.Spec{commandSpec()}, s.now))
			})
		}()
		<-began
		if err := d.Close(); err != nil {
			s.Error(err)
		}

		stored := 0
		for _, err := range <-done {
			switch {
			case err == nil:
				stored++
			case !errors.Is(err, jobs.ErrClosed):
				s.Error(err)
			}
		}

		if n := s.number(`SELECT count(*) FROM tasks`); n != int64(stored) {
			s.Errorf("got %d tasks, want %d as inserts that succeeded", n, stored)
		}
	},
	"a lock that is held too long is ErrBusy, and nothing is written": func(s *store) {
		d := s.open(db.Options{BusyTimeout: 20 * time.Millisecond})
		release := s.lockWrites()
		for _, err := range inParallel(3, func(int) error {
			return errorOf(d.Insert(s.Context(), []jobs.Spec{commandSpec()},
				s.now))
		}) {
			if !errors.Is(err, jobs.ErrBusy) {
				s.Errorf("got %v, want error %v", err, jobs.ErrBusy)
			}
		}

		release()
		if n := must(d.Count(s.Context(), jobs.Filter{}))(s); n != 0 {
			s.Errorf("got %v, want 0", n)
		}

		must(d.Insert(s.Context(), []jobs.Spec{commandSpec()}, s.now))(s)
	},
	"two handles write at the same time without errors": func(s *store) {
		other := s.open(db.Options{Normal: true})
		errs := inParallel(4, func(i int) error {
			d := s.DB
			if i%2 == 0 {
				d = other
			}
			for range 100 {
				if _, err := d.Insert(s.Context(), []jobs.Spec{commandSpec()}, s.now); err != nil {
					return err
				}
			}

			return nil
		})
		if err := errors.Join(errs...); err != nil || s.number(`SELECT count(*) FROM tasks`) != 400 {
			s.Errorf("got error %v, tasks %v; want nil, 400", err, s.number(`SELECT count(*) FROM tasks`))
		}
	},
}

func errorOf[V any](_ V, err error) error { return err }
