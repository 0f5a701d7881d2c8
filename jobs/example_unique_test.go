package jobs_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
)

// temp opens a database in a temporary directory. remove closes the database
// and deletes the directory.
func temp() (r *runner.Runner, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	if r, err = runner.Open(context.Background(), filepath.Join(dir, "app.db"), runner.Options{}); err != nil {
		log.Fatal(err)
	}
	return r, func() {
		r.Close()
		os.RemoveAll(dir)
	}
}

// The hooks of a task are commands, which run when the task has ended.
func ExampleCommand_hooks() {
	backup := command.Command{Argv: []string{"backup.sh"}}
	backup.OnFailure = "mail -s 'the backup failed' root"
	backup.OnRecovery = "mail -s 'the backup works again' root"
	spec := jobs.Command(backup)
	fmt.Println(spec.OnFailure)
	fmt.Println(spec.OnRecovery)
	// Output:
	// mail -s 'the backup failed' root
	// mail -s 'the backup works again' root
}

// A completed task holds its key until it is deleted, so Ann gets one mail. A
// failed task frees its key, so the same mail can be enqueued again.
func ExampleUniqueWith_states() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(SendEmail.Handler(func(_ context.Context, mail Email) error {
		fmt.Println("to", mail.To)
		return nil
	}))
	welcome := SendEmail.With(Email{To: "ann@example.com"},
		jobs.UniqueWith("welcome ann", jobs.UniqueOptions{States: []jobs.State{jobs.Completed}}))
	for range 2 {
		task, err := r.Enqueue(ctx, welcome)
		fmt.Println(task.ID, task.State, task.Kept, err)
		if err := r.Work(ctx, runner.WorkOptions{UntilEmpty: true}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1 pending false <nil>
	// to ann@example.com
	// 1 completed true <nil>
}

// While a task waits or runs, another task of its job with the same arguments
// is not added.
func ExampleUniqueWith_args() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	for _, number := range []int{7, 7, 8} {
		task, err := r.Enqueue(ctx, MakeInvoice.With(Invoice{Number: number}, jobs.UniqueWith("", jobs.UniqueOptions{Args: true})))
		fmt.Println(task.ID, task.Kept, err)
	}
	// Output:
	// 1 false <nil>
	// 1 true <nil>
	// 2 false <nil>
}
