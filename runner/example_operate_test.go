package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// enqueue adds a task and returns its id.
func enqueue(r *runner.Runner, spec jobs.Spec) int64 {
	task, err := r.Enqueue(context.Background(), spec)
	if err != nil {
		log.Fatal(err)
	}
	return task.ID
}

// Each id gets its own result, so an unknown id does not affect the other ids.
func ExampleRunner_Cancel() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	id := enqueue(r, SendEmail.With(Email{To: "ann@example.com"}))
	results, err := r.Cancel(ctx, []int64{id, 99}, runner.CancelOptions{Reason: "the order is withdrawn"})
	for _, result := range results {
		fmt.Println(result.ID, result.Done)
	}
	fmt.Println(err)
	task, err := r.Get(ctx, id)
	fmt.Println(task.State, task.Reason, err)
	// Output:
	// 1 true
	// 99 false
	// <nil>
	// cancelled cancelled <nil>
}

// Retry makes finished tasks pending again, with new attempts.
func ExampleRunner_Retry() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	open := false
	r.Register(SendEmail.Handler(func(context.Context, Email) error {
		if !open {
			return jobs.Fail(errors.New("the mail server is closed"))
		}
		return nil
	}))
	id := enqueue(r, SendEmail.With(Email{To: "ann@example.com"}))
	for range 2 {
		if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
			log.Fatal(err)
		}
		task, err := r.Get(ctx, id)
		fmt.Println(task.State, task.Attempt, task.Error, err)
		open = true
		var failed []int64
		for task, err := range r.All(ctx, jobs.Filter{States: []jobs.State{jobs.Failed}}) {
			if err != nil {
				log.Fatal(err)
			}
			failed = append(failed, task.ID)
		}
		if _, err := r.Retry(ctx, failed, runner.RetryOptions{}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// failed 1 the mail server is closed <nil>
	// completed 1  <nil>
}

// A task can wait for other tasks, and read their results. The field
// DependsOnEarlier names another task of the same call by its position.
func ExampleRunner_EnqueueMany() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	album := jobs.Define[string]("album")
	r.Register(MakeThumb.Handler(resize), album.Handler(func(ctx context.Context, title string) error {
		upstream, err := runner.Upstream(ctx)
		if err != nil {
			return err
		}
		for _, task := range upstream {
			thumb, err := MakeThumb.Result(task, nil)
			if err != nil {
				return err
			}
			fmt.Println(title, "has", thumb.Name)
		}
		return nil
	}))
	last := album.With("summer")
	last.DependsOnEarlier = []int{0, 1}
	added, err := r.EnqueueMany(ctx, MakeThumb.With(Image{"sea.png"}), MakeThumb.With(Image{"sun.png"}), last)
	fmt.Println(len(added), err)
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// 3 <nil>
	// summer has small sea.png
	// summer has small sun.png
	// <nil>
}

// Logger writes to the output of the task. A program can read this output like
// the output of a command.
func ExampleLogger() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(SendEmail.Handler(func(ctx context.Context, mail Email) error {
		runner.Logger(ctx).Info("sent", "to", mail.To)
		return nil
	}))
	id := enqueue(r, SendEmail.With(Email{To: "ann@example.com"}))
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
		log.Fatal(err)
	}
	task, err := r.Get(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	attempts, err := admin.Attempts(ctx, r, task)
	if err != nil {
		log.Fatal(err)
	}
	chunks, err := admin.Output(ctx, r, attempts[0], 0, 1<<20)
	for _, chunk := range chunks {
		fmt.Printf("%s %s", chunk.Stream, chunk.Data)
	}
	fmt.Println(err)
	// Output:
	// stderr level=INFO msg=sent to=ann@example.com
	// <nil>
}

// The function given to ConsumeFinished prints each failed task of any job and
// process. It also prints tasks that failed without an attempt.
func ExampleRunner_ConsumeFinished() {
	ctx, stop := context.WithCancel(context.Background()) // in a real program, the context ends with the program
	r, remove := temp()
	defer remove()
	if err := admin.AddCursor(ctx, r, "dead-letters"); err != nil { // after this call, ConsumeFinished misses no finished task
		log.Fatal(err)
	}
	r.Register(SendEmail.Handler(func(context.Context, Email) error { return jobs.Fail(errors.New("no such address")) }))
	enqueue(r, SendEmail.With(Email{To: "an@example.com"}))
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
		log.Fatal(err)
	}
	err := r.ConsumeFinished(ctx, "dead-letters", func(_ context.Context, task jobs.Task) error {
		if task.State == jobs.Failed {
			fmt.Printf("task %d of job %s failed: %s\n", task.ID, task.Job, task.Error)
		}
		stop()     // ends ConsumeFinished; a real program does not stop here
		return nil // the result nil moves the cursor past this task
	})
	fmt.Println(err) // ConsumeFinished returns only when ctx ends, or when the database can no longer be used
	// Output:
	// task 1 of job email.send failed: no such address
	// context canceled
}

// A call of Enqueue that returned an error may nevertheless have added the
// task. With UniqueOptions.For a program can safely repeat the call.
func ExampleRunner_Enqueue_repeated() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(SendEmail.Handler(func(context.Context, Email) error { return nil }))
	for range 2 {
		task, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"},
			jobs.UniqueWith("welcome ann", jobs.UniqueOptions{For: 24 * time.Hour})))
		fmt.Println(task.ID, task.State, task.Kept, err)
		if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 pending false <nil>
	// 1 completed true <nil>
}
