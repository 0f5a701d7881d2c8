package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs/command"
)

// Handler runs the tasks of one job in a worker. Make one with Func.Handler or
// ResultFunc.Handler.
type Handler struct {
	Job         string
	MaxAttempts int // default of Task.MaxAttempts; a task without MaxAttempts gets this value at its first start
	BulkSize    int // greatest number of tasks in a batch; 0 if the Handler runs single tasks; see Func.BulkHandler

	// BulkWait is how long a task of a bulk handler waits, from its due time,
	// until the batch is full. With 0, the default, a batch starts at once. A
	// task that waits for a full call is pending and takes no slot. A suspect,
	// which is a task that may have killed its workers, does not wait.
	BulkWait time.Duration

	// Run executes one attempt. The result is JSON or nil. The errors of
	// RetryIn, Snooze, Fail and Cancel have special meanings, which
	// their documentation explains. Many goroutines call Run at the same time.
	// The context ends on a timeout, a cancellation, the loss of the lease and
	// a shutdown; context.Cause returns the cause.
	Run func(ctx context.Context, task Task) (json.RawMessage, error)

	commands any // see usercode.Commands
}

func init() { usercode.Commands = func(handler any) *any { return &handler.(*Handler).commands } }

// Func is a job that is a Go function from In to an error. Make it once with
// Define, and use it both to enqueue tasks and to register the function with a
// worker.
type Func[In any] struct {
	job      string
	defaults []Option
}

// ResultFunc is a job that is a Go function from In to Out or an error.
type ResultFunc[In, Out any] struct{ Func[In] }

// Define defines a job whose tasks store an In as JSON. The options are the
// defaults of its tasks. The In may get new fields later: older tasks leave
// them zero. For any other change, an UnmarshalJSON of In decodes the arguments
// of older tasks. Arguments that can't be decoded fail the attempt with
// ReasonArgs, and it is retried like others: a newer program may decode them.
func Define[In any](job string, defaults ...Option) Func[In] {
	return Func[In]{job: job, defaults: defaults}
}

// DefineResult defines a job whose tasks store an In as arguments and an Out as
// result, both as JSON.
func DefineResult[In, Out any](job string, defaults ...Option) ResultFunc[In, Out] {
	return ResultFunc[In, Out]{Define[In](job, defaults...)}
}

// Job returns the name given to Define.
func (f Func[In]) Job() string { return f.job }

// With returns the Spec of a task that calls the function with the given input.
// With does not fail. If it cannot encode the input as JSON, it sets Spec.Err,
// and Enqueue returns that error.
func (f Func[In]) With(in In, options ...Option) Spec {
	s := newSpec(f.job, []Option{MaxAttempts(funcAttempts)}, f.defaults, options)
	if f.job == command.Job {
		s.Err = invalid("job", "%s is reserved", command.Job)
		return s
	}
	args, err := usercode.Marshal(in)
	s.setArgs(args, err)
	return s
}

// Args decodes the arguments of a task of this job. The error is ErrInvalid for
// a task of another job, and else one that wraps that of encoding/json. If a
// handler returns the error of arguments that can't be decoded, the attempt has
// ReasonArgs.
func (f Func[In]) Args(task Task) (In, error) {
	var in In
	if err := f.check(task); err != nil {
		return in, err
	}
	return f.args(task)
}

// check returns an error for a task of another job. A task without a job is
// one that its caller has made.
func (f Func[In]) check(task Task) error {
	if task.Job == f.job || task.Job == "" {
		return nil
	}
	return &Error{Kind: ErrInvalid, What: fmt.Sprintf("task %d is of job %s, not %s", task.ID, task.Job, f.job),
		Hint: "the Func of its job"}
}

func (f Func[In]) args(task Task) (In, error) {
	var in In
	if len(task.Args) == 0 {
		return in, nil
	}
	if err := json.Unmarshal(task.Args, &in); err != nil {
		return in, &argsError{wrapped{fmt.Errorf("args of %s: %w", f.job, err)}}
	}
	return in, nil
}

// Handler returns a Handler that calls the given function. Many goroutines call
// the function at the same time. When the worker stops, the context of the
// function ends after the time Grace (see runner.WorkOptions). If the function
// then returns any error, such as ctx.Err(), the task goes back to its queue,
// and the attempt does not count. Handler panics if the function is nil.
func (f Func[In]) Handler(call func(context.Context, In) error) Handler {
	return f.handler(call == nil, func(ctx context.Context, in In) (json.RawMessage, error) { return nil, call(ctx, in) })
}

// Handler returns a Handler that calls the given function. Many goroutines call
// the function at the same time. The Out is stored as the task's result if the
// error is nil. Handler panics if the function is nil.
func (f ResultFunc[In, Out]) Handler(call func(context.Context, In) (Out, error)) Handler {
	return f.handler(call == nil, func(ctx context.Context, in In) (json.RawMessage, error) {
		out, err := call(ctx, in)
		if err != nil {
			return nil, err
		}
		return usercode.MarshalResult(out)
	})
}

func (f Func[In]) handler(isNil bool, call func(context.Context, In) (json.RawMessage, error)) Handler {
	if isNil {
		panic("jobs: the handler of " + f.job + " is nil")
	}

	attempts := newSpec(f.job, []Option{MaxAttempts(funcAttempts)}, f.defaults).MaxAttempts
	h := Handler{Job: f.job, MaxAttempts: attempts}
	h.Run = func(ctx context.Context, task Task) (json.RawMessage, error) {
		in, err := f.args(task)
		if err != nil {
			return nil, err
		}
		return call(ctx, in)
	}
	return h
}

// Result decodes the result of a task, as in f.Result(r.Await(ctx, id)). If the
// task did not complete, the error is a *FailedError. It is ErrInvalid for a
// task of another job.
func (f ResultFunc[In, Out]) Result(task Task, err error) (Out, error) {
	var out Out
	switch {
	case err != nil:
		return out, err
	case f.check(task) != nil:
		return out, f.check(task)
	case task.State != Completed:
		return out, &FailedError{ID: task.ID, State: task.State, Reason: task.Reason, Msg: task.Error}
	case len(task.Result) == 0:
		return out, nil
	}

	if err := json.Unmarshal(task.Result, &out); err != nil {
		return out, fmt.Errorf("result of task %d: %w", task.ID, err)
	}

	return out, nil
}
