package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

// snapshotRun is a measurement of tasks that arrive one by one while another
// session holds a snapshot.
type snapshotRun struct {
	held     time.Duration // how long the session holds its snapshot
	measured time.Duration // length of each of the three phases; see snapshot
	workers  int           // clients that run tasks, each with 25 slots
	callers  int           // goroutines that add tasks; each waits for the start of its task before it adds the next one
}

// phaseResult is the result of one phase of a snapshotRun.
type phaseResult struct {
	rate     float64 // tasks per second
	p50, p99 time.Duration
}

var phaseNames = []string{"before", "held", "after"}

// snapshot measures runner, and then River with short pauses between its
// fetches ("River, tuned"). It measures both on the same server and in three
// phases. In the first phase no session holds a snapshot. The second phase is
// the last part of the time in which a session holds a snapshot. The third
// phase begins when the session has ended. For each phase, snapshot prints the
// rate of the tasks, and the time from the call that adds a task to the start
// of the task.
func (r snapshotRun) snapshot(ctx context.Context, e *env, renew func() error) error {
	of := []system{systems[0], systems[2]}
	results := make([][]phaseResult, len(of))
	for i, s := range of {
		if err := renew(); err != nil {
			return err
		}
		var err error
		if results[i], err = r.measure(ctx, e.address, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\n%d callers, %d workers, snapshot held for %s\nsystem\tphase\trate /s\tp50 ms\tp99 ms\trate to before\t"+
		"p99 to before\trate to River\n", r.callers, r.workers, r.held)
	for i, s := range of {
		before := results[i][0]
		for k, got := range results[i] {
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\n", s.name, phaseNames[k], got.rate, milliseconds(got.p50),
				milliseconds(got.p99), got.rate/before.rate, float64(got.p99)/float64(before.p99), got.rate/results[1][k].rate)
		}
	}

	return w.Flush()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measure runs the three phases for one system.
func (r snapshotRun) measure(ctx context.Context, address string, s system) (results []phaseResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.held+4*r.measured+2*time.Minute)
	defer cancel()
	err = r.arrive(ctx, address, s, func(a *arrivals) error {
		results, err = r.phases(ctx, address, s, a)
		return err
	})
	return results, err
}

// arrive starts workers and callers: the callers add tasks one by one, and the
// workers run them. Meanwhile arrive calls during.
func (r snapshotRun) arrive(ctx context.Context, address string, s system, during func(*arrivals) error) (err error) {
	a := &arrivals{started: make([]chan struct{}, r.callers)}
	for i := range a.started {
		a.started[i] = make(chan struct{}, 1)
	}

	caller, err := s.open(ctx, address, 1, nil)
	if err != nil {
		return err
	}
	defer caller.close()

	for range r.workers {
		worker, err := s.open(ctx, address, 25, func(p payload) { a.started[p.N] <- struct{}{} })
		if err != nil {
			return err
		}
		defer worker.close()

		if err := worker.start(ctx); err != nil {
			return err
		}
		defer func() {
			if stopErr := worker.stop(ctx); err == nil {
				err = stopErr
			}
		}()
	}

	feeding, stop := context.WithCancel(ctx)
	defer stop()

	var wg sync.WaitGroup
	defer wg.Wait()

	for c := range r.callers {
		wg.Go(func() { a.feed(feeding, ctx, caller, c) })
	}

	defer stop()

	if _, err := a.phase(ctx, r.measured/4); err != nil { // the tasks of this phase only warm up the system
		return err
	}

	return during(a)
}

// phases runs the three phases.
func (r snapshotRun) phases(ctx context.Context, address string, s system, a *arrivals) (results []phaseResult, err error) {
	one := func(name string, length time.Duration) error {
		got, err := a.phase(ctx, length)
		log.Printf("%-14s %-8s %4.0f s %8.0f/s  p50 %6.1f ms  p99 %6.1f ms", s.name, name, length.Seconds(), got.rate,
			milliseconds(got.p50), milliseconds(got.p99))
		results = append(results, got)
		return err
	}
	if err := one(phaseNames[0], r.measured); err != nil {
		return nil, err
	}

	holder, err := holdSnapshot(ctx, address)
	if err != nil {
		return nil, err
	}
	defer holder.Close(ctx)

	// Measure again and again until the time r.held has passed. Only the last
	// of these measurements stays in "results".
	for rest := r.held; rest > 0; rest -= r.measured {
		if len(results) > 1 {
			results = results[:1]
		}
		if err := one(phaseNames[1], min(rest, r.measured)); err != nil {
			return nil, err
		}
	}

	if err := holder.Close(ctx); err != nil {
		return nil, err
	}

	return results, one(phaseNames[2], r.measured)
}

// holdSnapshot opens a session that holds a snapshot until the caller closes
// it.
func holdSnapshot(ctx context.Context, address string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, address)
	if err == nil {
		_, err = conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
	}
	return conn, err
}

// arrivals are the tasks that the callers of a snapshotRun add.
type arrivals struct {
	started []chan struct{} // for each caller: receives a value when the task of the caller starts

	mu   sync.Mutex
	took []time.Duration // for each task that has started in this phase: time from its enqueue to its start
	err  error
}

// feed adds tasks for one caller until feeding ends. It adds the next task when
// the previous one has started.
func (a *arrivals) feed(feeding, ctx context.Context, q *queue, caller int) {
	for feeding.Err() == nil {
		began := time.Now()
		err := q.add(ctx, newPayload(caller))
		if err == nil {
			select {
			case <-a.started[caller]:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}

		a.mu.Lock()
		a.took = append(a.took, time.Since(began))
		if err != nil {
			a.err = err
		}

		a.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// phase waits for the given time, and returns the result of the tasks that have
// started during this time.
func (a *arrivals) phase(ctx context.Context, length time.Duration) (phaseResult, error) {
	a.begin()
	select {
	case <-time.After(length):
	case <-ctx.Done():
		return phaseResult{}, context.Cause(ctx)
	}
	return a.end(length)
}

// count waits until n more tasks have started, and returns the result of these
// tasks.
func (a *arrivals) count(ctx context.Context, n int) (phaseResult, error) {
	a.begin()
	began := time.Now()
	for a.n() < n {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return phaseResult{}, context.Cause(ctx)
		}
	}

	return a.end(time.Since(began))
}

func (a *arrivals) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = nil
}

// n returns the number of tasks that have started since the last call of begin.
// After an error it returns a huge number, so that nobody waits for more tasks.
func (a *arrivals) n() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return math.MaxInt
	}
	return len(a.took)
}

// end returns the result of the tasks that have started since the last call of
// begin. length is the time since that call.
func (a *arrivals) end(length time.Duration) (phaseResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	n := len(a.took)
	if a.err != nil || n == 0 {
		return phaseResult{}, fmt.Errorf("%d tasks have started: %w", n, a.err)
	}

	slices.Sort(a.took)
	return phaseResult{rate: float64(n) / length.Seconds(), p50: a.took[n/2], p99: a.took[n*99/100]}, nil
}
