package runner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// Enqueue adds a task, and returns it when the task is on the disk. If another
// task holds the unique key of the Spec (see jobs.Unique), Enqueue adds nothing
// and returns that task with Kept set. If retention has deleted that task, only
// ID, UniqueKey and Kept are set.
//
// The error is jobs.ErrInvalid for an invalid Spec, jobs.ErrNotFound if the
// Spec waits for a task that does not exist, and jobs.ErrConflict if the Spec
// would replace a task that it waits for. While other processes hold the write
// lock of the file, the error is jobs.ErrBusy, or the cause of ctx if ctx ends.
// After these errors Enqueue has added no task. After any other error the task
// may exist nevertheless, and it may even have finished. To repeat such a call
// safely, give the Spec a unique key with UniqueOptions.For, a time that is
// longer than all your repetitions take. Then all calls together add one task.
// With jobs.Unique alone, a repeated call adds a second task if the first one
// has finished.
func (r *Runner) Enqueue(ctx context.Context, spec jobs.Spec) (jobs.Task, error) {
	at := now()
	specs := []jobs.Spec{spec} // the only copy on the heap
	if err := r.prepare(ctx, &specs[0]); err != nil {
		return jobs.Task{}, err
	}
	done, err := r.insert(ctx, specs, at)
	if err != nil {
		return jobs.Task{}, err
	}
	return enqueued(&specs[0], at, done[0], func(id int64) (jobs.Task, error) { return r.Get(ctx, id) })
}

// enqueued returns the task that an insert has added or kept. It calls get to
// read a task that isn't as new as the Spec.
func enqueued(spec *jobs.Spec, at time.Time, done jobs.Enqueued, get func(id int64) (jobs.Task, error)) (jobs.Task, error) {
	if !done.Kept && !done.Replaced && !taskspec.Ordered(spec) {
		task := taskspec.NewTask(spec, at)
		task.ID = done.ID
		if spec.Batch == jobs.NewBatch {
			task.Batch = task.ID
		}
		return task, nil
	}

	task, err := get(done.ID)
	if done.Kept && errors.Is(err, jobs.ErrNotFound) { // retention has deleted it, but its unique key is still held
		return taskspec.DeletedTask(done.ID, spec, at), nil
	}

	task.Kept = done.Kept && err == nil
	return task, err
}

// EnqueueMany adds a few tasks in one transaction: either all of them or none.
// The results are in the order of the specs. The error of an invalid spec is a
// *SpecError of kind jobs.ErrInvalid. The errors jobs.ErrNotFound and
// jobs.ErrConflict have the reasons that Enqueue documents.
func (r *Runner) EnqueueMany(ctx context.Context, specs ...jobs.Spec) ([]jobs.Enqueued, error) {
	specs = slices.Clone(specs)
	if err := r.prepareAll(ctx, specs); err != nil {
		return nil, err
	}
	return r.insert(ctx, specs, now())
}

// addFor adds the only task of a worker.
func (r *Runner) addFor(e *engine.Engine, one *db.OneTask) error {
	if err := r.prepare(one.Adding, &one.Spec); err != nil {
		return err
	}
	added, err := e.AddOnly(one.Adding, &one.Spec)
	if err != nil {
		return err
	}
	one.Added(added)
	r.store.Notify()
	return nil
}

// insert adds tasks whose Specs are prepared.
func (r *Runner) insert(ctx context.Context, specs []jobs.Spec, at time.Time) ([]jobs.Enqueued, error) {
	done, err := r.store.Insert(ctx, specs, at)
	if err == nil {
		r.store.Notify()
	}
	return done, err
}

// EnqueueSeq adds any number of tasks in one transaction: either all of them or
// none. It iterates over the specs once, and no other process can write
// meanwhile. So the specs should come from memory or from a file, not from a
// pipe, which may be slow. The error of an invalid spec is a *SpecError of kind
// jobs.ErrInvalid. The errors jobs.ErrNotFound and jobs.ErrConflict have the
// reasons that Enqueue documents.
func (r *Runner) EnqueueSeq(ctx context.Context, specs iter.Seq[jobs.Spec]) ([]jobs.Enqueued, error) {
	if specs == nil {
		return nil, invalidValue("such as slices.Values(list)", "the sequence of specs is nil")
	}

	n := 0
	var refused error
	done, err := r.store.InsertSeq(ctx, func(yield func(jobs.Spec, error) bool) {
		for spec := range specs {
			if err := r.prepare(ctx, &spec); err != nil {
				refused = &SpecError{Index: n, Err: err}
				yield(spec, errRefused)
				return
			}
			if n++; !yield(spec, nil) {
				return
			}
		}
	}, now())
	if refused != nil {
		return nil, refused
	}
	if err == nil {
		r.store.Notify()
	}

	return done, err
}

// errRefused stands for an error of enqueue middleware inside a transaction.
// The error itself stays outside, because its methods may panic, and package db
// calls them while other callers wait for the same transaction.
var errRefused = errors.New("refused")

// SpecError is the error of an invalid spec in a list of specs.
type SpecError struct {
	Index int // position of the spec in the list, from 0
	Err   error
}

func (e *SpecError) Error() string { return fmt.Sprintf("spec %d: %v", e.Index, e.Err) }

// Unwrap returns the error of the spec.
func (e *SpecError) Unwrap() error { return e.Err }

func (r *Runner) prepareAll(ctx context.Context, specs []jobs.Spec) error {
	for i := range specs {
		if err := r.prepare(ctx, &specs[i]); err != nil {
			return &SpecError{Index: i, Err: err}
		}
	}
	return nil
}

// prepare calls the middleware of UseEnqueue, and checks the Spec.
func (r *Runner) prepare(ctx context.Context, spec *jobs.Spec) error {
	if spec.CreatedBy == "" {
		spec.CreatedBy = db.CurrentUser()
	}
	if err := r.runEnqueueMiddleware(ctx, spec); err != nil {
		return err
	}
	return taskspec.Validate(spec)
}

// prepareTick calls the middleware of UseEnqueue for a task of a schedule. A
// panic is an error, because the call runs in a transaction that this process
// shares.
func (r *Runner) prepareTick(ctx context.Context, spec *jobs.Spec) error {
	var err error
	if p := usercode.Call(func() { err = r.runEnqueueMiddleware(ctx, spec) }); p != nil {
		p.Msg = "the middleware of UseEnqueue: " + p.Msg
		return p
	}
	return err
}
