package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Handler is what a worker calls for the tasks of one job. Make one with Func.Handler or ResultFunc.Handler.
type Handler struct {
	Job         string
	MaxAttempts int // of tasks that name none; filled in at their first start

	// Run executes one attempt. Its result is JSON, or nil; OutcomeOf reads what it returns. It is called from many
	// goroutines at once, and its context ends on timeout, cancel, loss and stop (see context.Cause).
	Run func(ctx context.Context, task Task) (json.RawMessage, error)
}

// Func is a job that is a Go function from In to an error. Its value is made once, by Define, and used by those who enqueue
// and by those who work.
type Func[In any] struct {
	job      string
	defaults []Option
}

// ResultFunc is a job that is a Go function from In to Out or an error.
type ResultFunc[In, Out any] struct{ Func[In] }

// Define names a job whose tasks carry an In as JSON. The options are the defaults of its tasks.
func Define[In any](job string, defaults ...Option) Func[In] {
	return Func[In]{job: job, defaults: defaults}
}

// DefineResult names a job whose tasks carry an In and leave an Out, both as JSON.
func DefineResult[In, Out any](job string, defaults ...Option) ResultFunc[In, Out] {
	return ResultFunc[In, Out]{Define[In](job, defaults...)}
}

// Job returns the name that Define was given.
func (f Func[In]) Job() string { return f.job }

// With makes the Spec of a task that calls the function with in. It cannot fail: an In that does not marshal leaves its
// error in Spec.Err.
func (f Func[In]) With(in In, options ...Option) Spec {
	s := newSpec(f.job, []Option{MaxAttempts(FuncAttempts)}, f.defaults, options)
	if f.job == CommandJob {
		s.Err = invalid("job", "%s is reserved", CommandJob)
		return s
	}
	s.Args, s.Err = MarshalArgs(in)
	return s
}

// Args reads the input of a task of this job.
func (f Func[In]) Args(task Task) (In, error) {
	var in In
	if len(task.Args) == 0 {
		return in, nil
	}
	if err := json.Unmarshal(task.Args, &in); err != nil {
		return in, fmt.Errorf("args of %s: %w", f.job, err)
	}
	return in, nil
}

// Handler makes the function callable by a worker. It is called from many goroutines at once.
func (f Func[In]) Handler(call func(context.Context, In) error) Handler {
	return f.handler(func(ctx context.Context, in In) (json.RawMessage, error) { return nil, call(ctx, in) })
}

// Handler makes the function callable by a worker. It is called from many goroutines at once. Its Out is kept as the result
// only when its error is nil.
func (f ResultFunc[In, Out]) Handler(call func(context.Context, In) (Out, error)) Handler {
	return f.handler(func(ctx context.Context, in In) (json.RawMessage, error) {
		out, err := call(ctx, in)
		if err != nil {
			return nil, err
		}
		return MarshalResult(out)
	})
}

func (f Func[In]) handler(call func(context.Context, In) (json.RawMessage, error)) Handler {
	attempts := newSpec(f.job, []Option{MaxAttempts(FuncAttempts)}, f.defaults).MaxAttempts
	return Handler{Job: f.job, MaxAttempts: attempts, Run: func(ctx context.Context, task Task) (json.RawMessage, error) {
		in, err := f.Args(task)
		if err != nil {
			return nil, err
		}
		return call(ctx, in)
	}}
}

// MarshalResult turns a value into a result, or says that it cannot be kept as one.
func MarshalResult(value any) (json.RawMessage, error) {
	result, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	if err := ValidResult(result); err != nil {
		return nil, err
	}
	return result, nil
}

// ValidResult says whether text can be kept as a result: JSON in UTF-8, of at most MaxResult bytes and MaxDepth levels.
func ValidResult(text []byte) error {
	switch {
	case len(text) > MaxResult:
		return fmt.Errorf("result: %d bytes; at most %d", len(text), MaxResult)
	case !json.Valid(text):
		return fmt.Errorf("result: not JSON")
	case !utf8.Valid(text):
		return fmt.Errorf("result: not UTF-8")
	case depth(text) > MaxDepth:
		return fmt.Errorf("result: nested more than %d deep", MaxDepth)
	}
	return nil
}

// Result reads the result of a task, as in f.Result(r.Await(ctx, id)). A task that did not complete gives a *FailedError.
func (f ResultFunc[In, Out]) Result(task Task, err error) (Out, error) {
	var out Out
	switch {
	case err != nil:
		return out, err
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
