package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

var Order = jobs.Define[int]("order", jobs.WithBackoff(jobs.Backoff{})) // failed attempts are retried at once

// A step returns its stored value after a retry or a crash. A sleeping task
// uses no slot.
func ExampleStep() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	tries := 0
	r.Register(Order.Handler(func(ctx context.Context, number int) error {
		receipt, err := runner.Step(ctx, "charge", func(context.Context) (string, error) {
			fmt.Println("charge order", number)
			return "receipt 7", nil
		})
		if err != nil {
			return err
		}
		if err := runner.Sleep(ctx, "cool off", 20*time.Millisecond); err != nil {
			return err // the task becomes scheduled, and the function runs again after the sleep
		}
		_, err = runner.Step(ctx, "ship", func(context.Context) (any, error) {
			if tries++; tries == 1 {
				return nil, errors.New("no parcel service")
			}
			fmt.Println("ship with", receipt)
			return nil, nil
		})
		return err
	}))
	task, err := r.Enqueue(ctx, Order.With(42))
	if err != nil {
		log.Fatal(err)
	}
	work, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		_, _ = r.Await(ctx, task.ID)
	}()
	if err := r.Work(work, runner.WorkOptions{Concurrency: 1}); err != nil {
		log.Fatal(err)
	}
	steps, err := admin.Steps(ctx, r, task.ID)
	for _, step := range steps {
		fmt.Printf("%s: slept %v, %q\n", step.Name, step.Slept(), step.Value)
	}
	fmt.Println(err)
	// Output:
	// charge order 42
	// ship with receipt 7
	// charge: slept false, "\"receipt 7\""
	// cool off: slept true, ""
	// ship: slept false, "null"
	// <nil>
}

// The error that a function returns decides what happens next. The progress of
// the function is visible while it runs.
func ExampleProgress() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(Order.Handler(func(ctx context.Context, number int) error {
		task, _ := runner.TaskFromContext(ctx)
		runner.Progress(ctx, int64(number), 4, "counting")
		runner.Logger(ctx).Info("called", "attempt", task.Attempt) // `runner logs ID` shows this record
		switch {
		case number == 1:
			return jobs.Cancel(errors.New("unlucky")) // the task is cancelled, even if it has attempts left
		case number == 2 && task.Attempt < 3:
			return jobs.RetryIn(time.Millisecond, errors.New("not yet")) // the task is retried after 1 ms, without its backoff
		case number == 3:
			return jobs.Snooze(time.Hour) // the task runs again in an hour, and this attempt does not count
		}
		return nil // after any other error the task is retried with its backoff while it has attempts left
	}))
	for number := range 4 {
		if _, err := r.Enqueue(ctx, Order.With(number)); err != nil {
			log.Fatal(err)
		}
	}
	work, stop := context.WithCancel(ctx)
	go func() {
		defer stop()
		_, _ = r.Await(ctx, 3)
	}()
	if err := r.Work(work, runner.WorkOptions{Concurrency: 1}); err != nil {
		log.Fatal(err)
	}
	for task, err := range r.All(ctx, jobs.Filter{OldestFirst: true}) {
		fmt.Println(task.State, task.Attempt, task.Error, *task.Progress, err)
	}
	// Output:
	// completed 1  {0 4 counting} <nil>
	// cancelled 1 unlucky {1 4 counting} <nil>
	// completed 3  {2 4 counting} <nil>
	// scheduled 0  {3 4 counting} <nil>
}

func ExampleRunner_Use() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Use(func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (json.RawMessage,
		error) {
		result, err := next(ctx, task)
		fmt.Println(task.Job, "returned", string(result), err)
		return result, err
	})
	r.Register(MakeThumb.Handler(resize))
	if _, err := r.Enqueue(ctx, MakeThumb.With(Image{"sea.png"})); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// image.thumb returned {"Name":"small sea.png"} <nil>
	// <nil>
}

type tenantKey struct{}

// The middleware given to UseEnqueue stores the tenant in the metadata of each
// new task. The middleware given to Use puts this tenant into the context of
// the function that runs the task.
func ExampleRunner_UseEnqueue() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.UseEnqueue(func(ctx context.Context, spec *jobs.Spec) error {
		tenant, ok := ctx.Value(tenantKey{}).(string)
		if !ok {
			return errors.New("the context has no tenant")
		}
		spec.Metadata["tenant"] = tenant
		return nil
	})
	r.Use(func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (json.RawMessage,
		error) {
		return next(context.WithValue(ctx, tenantKey{}, task.Metadata["tenant"]), task)
	})
	greet := jobs.Define[string]("greet")
	r.Register(greet.Handler(func(ctx context.Context, name string) error {
		fmt.Println("hello", name, "of", ctx.Value(tenantKey{}))
		return nil
	}))
	_, err := r.Enqueue(ctx, greet.With("ann"))
	fmt.Println(err)
	if _, err := r.Enqueue(context.WithValue(ctx, tenantKey{}, "acme"), greet.With("bob")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	found, _, err := r.Count(ctx, jobs.Filter{Metadata: map[string]string{"tenant": "acme"}})
	fmt.Println(found, err)
	// Output:
	// the context has no tenant
	// hello bob of acme
	// <nil>
	// 1 <nil>
}
