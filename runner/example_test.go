package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Email is the input of SendEmail.
type Email struct {
	To string `json:"to"`
}

// Image and Thumb are the input and the result of MakeThumb.
type (
	Image struct{ Name string }
	Thumb struct{ Name string }
)

// These options are the defaults of the jobs. Options given to With override
// them.
var (
	SendEmail = jobs.Define[Email]("email.send", jobs.MaxAttempts(8), jobs.Timeout(30*time.Second))
	MakeThumb = jobs.DefineResult[Image, Thumb]("image.thumb", jobs.Queue("media"))
)

func send(_ context.Context, mail Email) error {
	fmt.Println("to", mail.To)
	return nil
}

func resize(_ context.Context, image Image) (Thumb, error) {
	return Thumb{"small " + image.Name}, nil
}

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

// This example opens a file, registers functions, enqueues a task, and runs
// tasks until no task is due. A real program calls Work, which runs until its
// context ends.
func Example() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(
		SendEmail.Handler(send),   // send is a func(context.Context, Email) error
		MakeThumb.Handler(resize), // resize is a func(context.Context, Image) (Thumb, error)
	)
	task, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"}))
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
		log.Fatal(err)
	}
	task, err = r.Get(ctx, task.ID)
	fmt.Println(task.State, task.Attempt, "of", task.MaxAttempts, err)
	// Output:
	// to ann@example.com
	// completed 1 of 8 <nil>
}

func ExampleRunner_Enqueue() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	task, err := r.Enqueue(ctx, SendEmail.With(Email{To: "ann@example.com"}, jobs.In(10*time.Minute), jobs.Priority(7)))
	fmt.Println(task.Job, string(task.Args), task.State, task.Priority, task.Timeout, err)
	task, err = r.Enqueue(ctx, jobs.Command(command.Command{Argv: []string{"backup.sh", "--full"}}, jobs.Timeout(time.Hour)))
	fmt.Println(string(task.Args), task.State, task.MaxAttempts, err)
	_, err = r.Enqueue(ctx, SendEmail.With(Email{}, jobs.Queue("no queue")))
	fmt.Println(errors.Is(err, jobs.ErrInvalid), err)
	// Output:
	// email.send {"to":"ann@example.com"} scheduled 7 30s <nil>
	// ["backup.sh","--full"] pending 1 <nil>
	// true queue: invalid name "no queue"; use a letter or digit, then at most 99 letters, digits or ._-
}

func ExampleRunner_EnqueueSeq() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	specs := []jobs.Spec{
		SendEmail.With(Email{To: "ann@example.com"}, jobs.Unique("welcome ann")),
		SendEmail.With(Email{To: "ann@example.com"}, jobs.Unique("welcome ann")),
		MakeThumb.With(Image{"sea.png"}),
	}
	added, err := r.EnqueueSeq(ctx, slices.Values(specs)) // one transaction adds all tasks or none of them
	for _, one := range added {
		fmt.Println(one.ID, one.Kept)
	}
	fmt.Println(err)
	// Output:
	// 1 false
	// 1 true
	// 2 false
	// <nil>
}

// Await can be called in any process. Result decodes the result of the
// function.
func ExampleRunner_Await() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute) // the timeout ends only this wait; the task continues
	defer stop()
	r, remove := temp()
	defer remove()
	r.Register(MakeThumb.Handler(func(ctx context.Context, image Image) (Thumb, error) {
		if image.Name == "" {
			return Thumb{}, jobs.Cancel(errors.New("no such image"))
		}
		return resize(ctx, image)
	}))
	task, err := r.Enqueue(ctx, MakeThumb.With(Image{"sea.png"}))
	if err != nil {
		log.Fatal(err)
	}
	bad, err := r.Enqueue(ctx, MakeThumb.With(Image{}))
	if err != nil {
		log.Fatal(err)
	}
	work := make(chan error)
	go func() { work <- r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}) }() // Work may also run in another process
	thumb, err := MakeThumb.Result(r.Await(ctx, task.ID))
	fmt.Println(thumb.Name, err)
	_, err = MakeThumb.Result(r.Await(ctx, bad.ID))
	var failed *jobs.FailedError
	fmt.Println(errors.As(err, &failed), err)
	fmt.Println(<-work)
	// Output:
	// small sea.png <nil>
	// true task 2 cancelled: no such image
	// <nil>
}

// All yields the tasks that a filter selects, the newest first, without holding
// all of them in memory.
func ExampleRunner_All() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	for _, name := range []string{"ann", "bob"} {
		if _, err := r.Enqueue(ctx, SendEmail.With(Email{To: name})); err != nil {
			log.Fatal(err)
		}
	}
	for task, err := range r.All(ctx, jobs.Filter{Jobs: []string{SendEmail.Job()}, States: []jobs.State{jobs.Pending}}) {
		if err != nil {
			log.Fatal(err)
		}
		mail, err := SendEmail.Args(task)
		fmt.Println(task.ID, mail.To, err)
	}
	// Output:
	// 2 bob <nil>
	// 1 ann <nil>
}

// A schedule can be read from the JSON that "runner schedule list --json"
// prints. Applying the same definition again changes nothing.
func ExampleRunner_SetSchedule() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	weekly := jobs.Schedule{Name: "weekly", Cron: "0 6 * * MON", Zone: "Europe/Berlin", Spec: SendEmail.With(Email{To: "all@example.com"})}
	for range 2 {
		if err := r.SetSchedule(ctx, weekly); err != nil {
			log.Fatal(err)
		}
	}
	list, err := admin.Schedules(ctx, r)
	fmt.Println(len(list), list[0].Name, list[0].NextAt.Weekday(), err)
	// Output: 1 weekly Monday <nil>
}
