package runnertest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
)

type Order struct{ ID int }

// charge is a job whose tasks are retried after a minute.
var charge = jobs.Define[Order]("charge", jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Minute}))

// example takes the place of the *testing.T of a test, which an example
// function does not have.
type example struct {
	testing.TB
	ends []func()
}

func (e *example) Helper()                  {}
func (e *example) Cleanup(end func())       { e.ends = append(e.ends, end) }
func (e *example) Context() context.Context { return context.Background() }
func (e *example) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
func (e *example) Errorf(format string, args ...any) { fmt.Printf(format, args...) }

func (e *example) TempDir() string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	e.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (e *example) end() {
	for len(e.ends) > 0 {
		last := len(e.ends) - 1
		end := e.ends[last]
		e.ends = e.ends[:last]
		end()
	}
}

// A test on fake time: the second attempt follows a minute later, but the test
// does not wait for that minute.
func ExampleRun() {
	_ = func(t *testing.T) {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			calls := 0
			r.Register(charge.Handler(func(context.Context, Order) error {
				if calls++; calls == 1 {
					return errors.New("the bank is closed")
				}
				return nil
			}))
			if _, err := r.Enqueue(t.Context(), charge.With(Order{7})); err != nil {
				t.Fatal(err)
			}
			if ran := runnertest.RunDue(t, r); ran[0].State != jobs.Retrying {
				t.Errorf("got %s, want retrying", ran[0].State)
			}
			runnertest.Advance(t, time.Minute)
			if ran := runnertest.RunDue(t, r); ran[0].State != jobs.Completed {
				t.Errorf("got %s, want completed", ran[0].State)
			}
		})
	}
}

// RunDue runs all due tasks and returns them. In a test, t is the *testing.T.
func ExampleRunDue() {
	t := &example{}
	defer t.end()
	r := runnertest.New(t)
	r.Register(charge.Handler(func(context.Context, Order) error { return nil }))
	if _, err := r.Enqueue(t.Context(), charge.With(Order{7})); err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	for _, task := range runnertest.RunDue(t, r) {
		fmt.Println(task.ID, task.State)
	}
	// Output: 1 completed
}

// Enqueued returns the inputs of the tasks that wait. It is for tests of the
// code that enqueues.
func ExampleEnqueued() {
	t := &example{}
	defer t.end()
	r := runnertest.New(t)
	if _, err := r.EnqueueMany(t.Context(), charge.With(Order{7}), charge.With(Order{8})); err != nil {
		t.Fatalf("add: %v", err)
	}
	fmt.Println(runnertest.Enqueued(t, r, charge))
	// Output: [{7} {8}]
}

// The worker dies right after it has taken the task. The next worker takes the
// task over.
func ExampleCrashAfterClaim() {
	t := &example{}
	defer t.end()
	r := runnertest.New(t)
	r.Register(charge.Handler(func(context.Context, Order) error { return nil }))
	if _, err := r.Enqueue(t.Context(), charge.With(Order{7})); err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	for _, task := range runnertest.CrashAfterClaim(t, r, 1) {
		fmt.Println(task.ID, task.State)
	}
	for _, task := range runnertest.RunDue(t, r) {
		fmt.Println(task.ID, task.State, "losses:", task.Losses)
	}
	// Output:
	// 1 running
	// 1 completed losses: 1
}

// The program is killed in the function, after its first step. The task runs
// again, and the step does not.
func ExampleCrash() {
	t := &example{}
	defer t.end()
	r := runnertest.New(t)
	ships := 0
	ship := func(ctx context.Context) { // a fake of a service
		if ships++; ships == 1 {
			runnertest.Crash(ctx, r) // does not return
		}
		fmt.Println("shipped")
	}
	r.Register(charge.Handler(func(ctx context.Context, order Order) error {
		_, err := runner.Step(ctx, "charge", func(context.Context) (string, error) {
			fmt.Println("charged order", order.ID)
			return "receipt", nil
		})
		if err == nil {
			ship(ctx)
		}
		return err
	}))
	if _, err := r.Enqueue(t.Context(), charge.With(Order{7})); err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	ran := runnertest.RunDue(t, r)
	fmt.Println(len(ran), "attempts:", ran[0].State, "losses:", ran[0].Losses)
	// Output:
	// charged order 7
	// shipped
	// 2 attempts: completed losses: 1
}

// The commit of the program's own transaction returns an error although it
// takes effect. So the row and the task exist, but the program does not know
// that.
func ExampleOpenDB() {
	t := &example{}
	defer t.end()
	r := runnertest.New(t)
	handle := runnertest.OpenDB(t, r)
	if _, err := handle.Exec(`CREATE TABLE orders (id INTEGER PRIMARY KEY) STRICT`); err != nil {
		t.Fatalf("create: %v", err)
	}
	order := func() error {
		tx, err := handle.BeginTx(t.Context(), nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.Exec(`INSERT INTO orders (id) VALUES (7)`); err != nil {
			return err
		}
		if _, err := r.EnqueueTx(t.Context(), tx, charge.With(Order{7})); err != nil {
			return err
		}
		return tx.Commit()
	}
	runnertest.FailAfterCommit(t, r)
	fmt.Println(order())
	var orders int
	if err := handle.QueryRow(`SELECT count(*) FROM orders`).Scan(&orders); err != nil {
		t.Fatalf("count: %v", err)
	}
	fmt.Println(orders, "order,", len(runnertest.Enqueued(t, r, charge)), "task")
	// Output:
	// runnertest: injected
	// 1 order, 1 task
}

// The task is stored although Enqueue returns an error, and a worker runs it
// before the second call. The unique key makes the second call safe, because
// For lets the task hold the key after it has finished.
func ExampleFailAfterCommit() {
	t := &example{}
	defer t.end()
	r := runnertest.New(t)
	r.Register(charge.Handler(func(_ context.Context, order Order) error {
		fmt.Println("charge order", order.ID)
		return nil
	}))
	runnertest.FailAfterCommit(t, r)
	for range 2 {
		task, err := r.Enqueue(t.Context(), charge.With(Order{7}, jobs.UniqueWith("charge 7", jobs.UniqueOptions{For: 24 * time.Hour})))
		fmt.Println("kept:", task.Kept, err)
		runnertest.RunDue(t, r)
	}
	// Output:
	// kept: false runnertest: injected
	// charge order 7
	// kept: true <nil>
}

// A worker that hangs loses its task while the function runs. The database
// refuses the result of the first attempt, and the second one completes the
// task.
func ExampleLose() {
	t := &example{}
	defer t.end()
	r := runnertest.New(t)
	calls := 0
	r.Register(charge.Handler(func(ctx context.Context, order Order) error {
		if calls++; calls > 1 {
			return nil
		}
		return runnertest.Lose(ctx, r)
	}))
	if _, err := r.Enqueue(t.Context(), charge.With(Order{7})); err != nil {
		t.Fatalf("enqueue: %v", err)
	}
	for range 2 {
		runnertest.RunDue(t, r)
	}
	task, err := r.Get(t.Context(), 1)
	fmt.Println(task.State, "losses:", task.Losses, "calls:", calls, err)
	// Output: completed losses: 1 calls: 2 <nil>
}
