package runner_test

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Sleep returns an error, which the function returns. The task becomes
// scheduled and uses no slot. When its time has come, the function runs again,
// and Sleep returns nil.
func ExampleSleep() {
	ctx, stop := context.WithCancel(context.Background())
	r, remove := temp()
	defer remove()
	r.Register(Order.Handler(func(ctx context.Context, number int) error {
		fmt.Println("called for order", number)
		if err := runner.Sleep(ctx, "cool off", 20*time.Millisecond); err != nil {
			return err
		}
		fmt.Println("ship order", number)
		return nil
	}))
	id := enqueue(r, Order.With(42))
	go func() {
		defer stop()
		_, _ = r.Await(ctx, id)
	}()
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1}))
	// Output:
	// called for order 42
	// called for order 42
	// ship order 42
	// <nil>
}

// A task reads the results of the tasks that it has waited for.
func ExampleUpstream() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	album := jobs.Define[string]("album")
	r.Register(MakeThumb.Handler(resize), album.Handler(func(ctx context.Context, title string) error {
		upstream, err := runner.Upstream(ctx)
		for _, task := range upstream {
			thumb, err := MakeThumb.Result(task, nil)
			fmt.Println(title, "has", thumb.Name, err)
		}
		return err
	}))
	sea, hill := enqueue(r, MakeThumb.With(Image{"sea.png"})), enqueue(r, MakeThumb.With(Image{"hill.png"}))
	enqueue(r, album.With("summer", jobs.DependsOn(sea, hill)))
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// summer has small sea.png <nil>
	// summer has small hill.png <nil>
	// <nil>
}
