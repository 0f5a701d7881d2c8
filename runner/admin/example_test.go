package admin_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Email is the input of a job.
type Email struct{ To string }

var SendEmail = jobs.Define[Email]("email.send")

func send(_ context.Context, mail Email) error {
	fmt.Println("to", mail.To)
	return nil
}

// temp opens a new database in a temporary directory, and returns a function
// that removes it.
func temp() (r *runner.Runner, remove func()) {
	dir, err := os.MkdirTemp("", "runner-example-*")
	if err != nil {
		log.Fatal(err)
	}

	r, err = runner.Open(context.Background(), filepath.Join(dir, "app.db"), runner.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return r, func() {
		r.Close()
		os.RemoveAll(dir)
	}
}

// enqueue adds a task and returns its id.
func enqueue(r *runner.Runner, spec jobs.Spec) int64 {
	task, err := r.Enqueue(context.Background(), spec)
	if err != nil {
		log.Fatal(err)
	}
	return task.ID
}

// While a queue is paused, its running tasks continue, but no other task of the
// queue starts. Why gives the pause as the reason.
func ExamplePauseQueues() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(SendEmail.Handler(send))
	if err := admin.PauseQueues(ctx, r, []string{"mail"}, admin.PauseOptions{Reason: "the mail server moves"}); err != nil {
		log.Fatal(err)
	}
	id := enqueue(r, SendEmail.With(Email{To: "ann@example.com"}, jobs.Queue("mail")))
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
		log.Fatal(err)
	}
	task, err := r.Get(ctx, id)
	fmt.Println(task.State, err)
	wait, err := admin.Why(ctx, r, task)
	fmt.Println(wait.Pause.Reason, err)
	fmt.Println(admin.ResumeQueues(ctx, r, "mail"))
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// pending <nil>
	// the mail server moves <nil>
	// <nil>
	// to ann@example.com
	// <nil>
}

// A limit applies to all workers of the database together. Here at most two
// tasks of the queue run at once. After a time without starts ten tasks may
// start at once, and then one every six seconds.
func ExampleSetLimit() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	mail := admin.Target{Kind: admin.QueueTarget, Name: "mail"}
	if err := admin.SetLimit(ctx, r, admin.Limit{Target: mail, Running: 2, Rate: 10, Per: time.Minute}); err != nil {
		log.Fatal(err)
	}
	limits, err := admin.Limits(ctx, r)
	for _, limit := range limits {
		fmt.Println(limit.Target, limit.Limit.Running, "at once,", limit.Rate, "a", limit.Per, err)
	}
	// Output: queue:mail 2 at once, 10 a 1m0s <nil>
}

// A backup is a database file of its own. It can be made while tasks run.
func ExampleBackup() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	enqueue(r, SendEmail.With(Email{To: "ann@example.com"}))
	to := filepath.Join(filepath.Dir(admin.Path(r)), "backup.db")
	if _, err := admin.Backup(ctx, r, admin.BackupOptions{Path: to}); err != nil {
		log.Fatal(err)
	}
	copied, err := runner.Open(ctx, to, runner.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer copied.Close()
	n, _, err := copied.Count(ctx, jobs.Filter{})
	fmt.Println(n, err)
	// Output: 1 <nil>
}

// Queues counts the tasks of each queue by state.
func ExampleQueues() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	enqueue(r, SendEmail.With(Email{To: "ann@example.com"}, jobs.Queue("mail")))
	enqueue(r, SendEmail.With(Email{To: "bob@example.com"}, jobs.Queue("mail"), jobs.In(time.Hour)))
	queues, err := admin.Queues(ctx, r)
	for _, queue := range queues {
		fmt.Println(queue.Name, queue.Counts[jobs.Pending], "pending,", queue.Counts[jobs.Scheduled], "scheduled", err)
	}
	// Output: mail 1 pending, 1 scheduled <nil>
}

// Why returns the reason why a task waits. This task waits for another task,
// whose id is in Tasks.
func ExampleWhy() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	first := enqueue(r, SendEmail.With(Email{To: "ann@example.com"}))
	second, err := r.Enqueue(ctx, SendEmail.With(Email{To: "bob@example.com"}, jobs.DependsOn(first)))
	if err != nil {
		log.Fatal(err)
	}
	wait, err := admin.Why(ctx, r, second)
	fmt.Println(second.State, wait.Tasks, err)
	// Output: blocked [1] <nil>
}

// Workers lists the workers of all processes. Here the function of a task calls
// Workers, so the list contains the worker that runs this task.
func ExampleWorkers() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(SendEmail.Handler(func(ctx context.Context, _ Email) error {
		workers, err := admin.Workers(ctx, r)
		for _, worker := range workers {
			fmt.Println(worker.State, worker.Slots, worker.Jobs, worker.Running)
		}
		return err
	}))
	enqueue(r, SendEmail.With(Email{To: "ann@example.com"}))
	fmt.Println(r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	// Output:
	// ready 1 [email.send] [1]
	// <nil>
}

// At each start, a program applies the list of schedules that it needs. A plan
// shows the changes without making them.
func ExampleApplySchedules() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	spec := SendEmail.With(Email{To: "all@example.com"})
	want := []jobs.Schedule{{Name: "weekly", Cron: "0 6 * * MON", Zone: "Europe/Berlin", Spec: spec}}
	for _, dryRun := range []bool{true, false, false} {
		applied, err := admin.ApplySchedules(ctx, r, want, admin.ApplyOptions{DryRun: dryRun, Prune: true})
		for _, one := range applied {
			fmt.Println(one.Schedule.Name, one.Did, err)
		}
	}
	// Output:
	// weekly added <nil>
	// weekly added <nil>
	// weekly unchanged <nil>
}

// AddCursor stores the cursor before the goroutine of ConsumeFinished starts.
// So ConsumeFinished misses no task that finishes after AddCursor, even if the
// goroutine starts late or the program is down when the task finishes.
func ExampleAddCursor() {
	ctx, stop := context.WithCancel(context.Background())
	r, remove := temp()
	defer remove()
	r.Register(SendEmail.Handler(func(context.Context, Email) error { return nil }))
	if err := admin.AddCursor(ctx, r, "audit"); err != nil { // a real program does this at each start
		log.Fatal(err)
	}
	ended, done := make(chan jobs.Task), make(chan error)
	go func() {
		done <- r.ConsumeFinished(ctx, "audit", func(_ context.Context, task jobs.Task) error { ended <- task; return nil })
	}()
	enqueue(r, SendEmail.With(Email{To: "ann@example.com"}))
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
		log.Fatal(err)
	}
	task := <-ended
	fmt.Println(task.ID, task.State)
	stop()
	fmt.Println(<-done)
	// Output:
	// 1 completed
	// context canceled
}
