package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
)

// Email is the input of SendEmail.
type Email struct {
	To      string
	Subject string
}

// Invoice and File are the input and the result of MakeInvoice.
type (
	Invoice struct{ Number int }
	File    struct{ Name string }
)

var (
	SendEmail   = jobs.Define[Email]("email.send", jobs.Queue("mail"), jobs.MaxAttempts(8))
	MakeInvoice = jobs.DefineResult[Invoice, File]("invoice.make", jobs.Timeout(time.Minute))
)

// A job is defined once. The code that enqueues and the code that works use the
// same value.
func Example() {
	spec := SendEmail.With(Email{To: "ann@example.com"}, jobs.In(time.Hour), jobs.Label("welcome"))
	fmt.Println(spec.Job, string(spec.Args))
	fmt.Println(spec.Queue, spec.MaxAttempts, spec.In, spec.Label)
	// Output:
	// email.send {"To":"ann@example.com","Subject":""}
	// mail 8 1h0m0s welcome
}

// The options given to With override those given to Define.
func ExampleDefine() {
	report := jobs.Define[string]("report", jobs.Priority(3), jobs.Timeout(time.Minute))
	usual := report.With("sales")
	urgent := report.With("sales", jobs.Priority(9))
	fmt.Println(usual.Priority, usual.Timeout)
	fmt.Println(urgent.Priority, urgent.Timeout)
	// Output:
	// 3 1m0s
	// 9 1m0s
}

// Result decodes the result of a task. For a task that did not complete, it
// returns a FailedError.
func ExampleResultFunc_Result() {
	done := jobs.Task{ID: 7, State: jobs.Completed, Result: json.RawMessage(`{"Name":"invoice-7.pdf"}`)}
	file, err := MakeInvoice.Result(done, nil)
	fmt.Println(file.Name, err)

	failed := jobs.Task{ID: 8, State: jobs.Failed, Reason: jobs.ReasonTimeout, Error: "it ran for longer than 1m"}
	_, err = MakeInvoice.Result(failed, nil)
	var why *jobs.FailedError
	fmt.Println(errors.As(err, &why), why.Reason, err)
	// Output:
	// invoice-7.pdf <nil>
	// true timeout task 8 failed (timeout): it ran for longer than 1m
}

func ExampleFunc_Args() {
	task := jobs.Task{Job: "email.send", Args: json.RawMessage(`{"To":"ann@example.com"}`)}
	mail, err := SendEmail.Args(task)
	fmt.Println(mail.To, err)
	// Output: ann@example.com <nil>
}

// A command is a program with its arguments. No shell reads the arguments, so a
// space in an argument does no harm.
func ExampleCommand() {
	spec := jobs.Command(command.Command{Argv: []string{"convert", "my photo.png", "small.jpg"}, Dir: "/srv/photos"},
		jobs.Timeout(time.Minute))
	fmt.Println(spec.Job, string(spec.Args), spec.Cwd, spec.MaxAttempts)
	// Output: command ["convert","my photo.png","small.jpg"] /srv/photos 1
}

// NewSpec makes a task of a job that another program, or another language,
// runs.
func ExampleNewSpec() {
	spec := jobs.NewSpec("resize", jobs.Queue("images"))
	spec.Args = json.RawMessage(`{"file":"sea.png"}`)
	fmt.Println(spec.Job, spec.Queue, string(spec.Args))
	// Output: resize images {"file":"sea.png"}
}

// The second attempt follows after 1 s, the third after 2 s, then 4 s, and so
// on up to a minute.
func ExampleWithBackoff() {
	spec := SendEmail.With(Email{}, jobs.MaxAttempts(20), jobs.WithBackoff(jobs.Backoff{Delay: time.Second, Max: time.Minute}))
	fmt.Println(spec.Backoff.Strategy, spec.Backoff.Delay, spec.Backoff.Max)
	// Output: exponential 1s 1m0s
}

// The command is tried again only after the exit codes that RetryOn lists.
func ExampleCommand_retryOn() {
	sync := command.Command{Argv: []string{"rsync", "-a", "photos/", "nas:photos"}}
	sync.RetryOn = "10-12,30,35" // exit codes of rsync after network errors
	spec := jobs.Command(sync, jobs.MaxAttempts(5))
	fmt.Println(spec.MaxAttempts, spec.RetryOn)
	// Output: 5 10-12,30,35
}

// Until the task with the unique key has finished, no other task with this key
// is added.
func ExampleUnique() {
	spec := SendEmail.With(Email{To: "ann@example.com"}, jobs.Unique("welcome ann"))
	fmt.Println(spec.UniqueKey)
	// Output: welcome ann
}

// The error of a handler decides what follows. After an error without a special
// meaning, the task starts again after its backoff, while attempts are left.
func ExampleSnooze() {
	handle := func(number int) error {
		switch number {
		case 1:
			return jobs.Snooze(time.Hour) // runs the task again in an hour; this attempt does not count
		case 2:
			return jobs.RetryIn(time.Minute, errors.New("the bank is closed")) // runs the task again in a minute; this attempt counts
		case 3:
			return jobs.Fail(errors.New("no such card")) // fails the task at once, although attempts are left
		case 4:
			return jobs.Cancel(errors.New("the order is withdrawn")) // cancels the task at once
		}
		return nil
	}
	for number := range 5 {
		fmt.Println(handle(number))
	}
	// Output:
	// <nil>
	// snoozed for 1h0m0s
	// the bank is closed
	// no such card
	// the order is withdrawn
}

func ExampleState_Finished() {
	for _, state := range []jobs.State{jobs.Retrying, jobs.Completed, jobs.Cancelled} {
		fmt.Println(state, state.Finished())
	}
	// Output:
	// retrying false
	// completed true
	// cancelled true
}

// errors.Is finds the kind of an error. errors.As finds the jobs.Error, which
// has the hint and other details.
func ExampleError() {
	var err error = &jobs.Error{Kind: jobs.ErrBusy, What: "the database is busy", Why: []string{"another process writes"},
		Hint: "try again"}
	var details *jobs.Error
	fmt.Println(errors.Is(err, jobs.ErrBusy), errors.As(err, &details))
	fmt.Println(err)
	fmt.Println(details.Hint)
	// Output:
	// true true
	// the database is busy: another process writes
	// try again
}

// An invalid field of a task is a FieldError.
func ExampleFieldError() {
	err := SendEmail.With(Email{}, jobs.Unique("")).Err
	var field *jobs.FieldError
	fmt.Println(errors.As(err, &field), field.Field, errors.Is(err, jobs.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true unique_key true
	// unique_key: it is empty
}

// A schedule enqueues a task at each tick of its cron expression.
func ExampleSchedule() {
	weekly := jobs.Schedule{Name: "newsletter", Cron: "0 6 * * MON", Zone: "Europe/Berlin",
		Spec: SendEmail.With(Email{Subject: "News"})}
	fmt.Println(weekly.Name, weekly.Cron, weekly.Zone)
	// Output: newsletter 0 6 * * MON Europe/Berlin
}

// A function gets up to 100 tasks of its job in one call, and each task has its
// own outcome. In place of the Println, a real program sends all mails with one
// request.
func ExampleFunc_BulkHandler() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r, err := runner.Open(ctx, filepath.Join(dir, "app.db"), runner.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	r.Register(SendEmail.BulkHandler(100, func(ctx context.Context, tasks []jobs.BulkTask[Email]) error {
		fmt.Println("one request with", len(tasks), "mails")
		for _, task := range tasks {
			if task.Input.To == "" {
				task.End(jobs.Fail(errors.New("no address"))) // only this task fails
			}
		}
		return nil // nil completes the other tasks
	}))
	_, err = r.EnqueueMany(ctx, SendEmail.With(Email{To: "ann@example.com"}), SendEmail.With(Email{}),
		SendEmail.With(Email{To: "bob@example.com"}))
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Work(ctx, runner.WorkOptions{UntilEmpty: true}); err != nil {
		log.Fatal(err)
	}
	for task, err := range r.All(ctx, jobs.Filter{OldestFirst: true}) {
		fmt.Println(task.State, task.Error, err)
	}
	// Output:
	// one request with 3 mails
	// completed  <nil>
	// failed no address <nil>
	// completed  <nil>
}
