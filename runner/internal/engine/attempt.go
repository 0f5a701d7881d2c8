package engine

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/internal/exec"
)

// An attempt has a goroutine that runs its handler (begin). Other goroutines
// may stop it at the same time: the heartbeat, a timeout, a cancel request, the
// shutdown. They only end the context of the attempt with a cause (stop). When
// the handler has returned, its goroutine reads the cause, and one function
// decides the outcome (classify). If the handler does not return, abandon sets
// the outcome.
//
// Invariants:
//   - An attempt gets one outcome, because only one function can set the field
//     attempt.over. The result of a handler that returns later is discarded.
//   - The outcome is complete before the attempt goes to Engine.ended. The loop
//     writes it, and reads the fields without a lock.
//   - The context of the attempt does not come from the context of the worker.
//     A shutdown first lets attempts end by themselves, and then stops them one
//     by one with a cause.
//   - The handler of an attempt that is past its deadline is not called,
//     because its task may belong to another worker by now.

// attempt is one execution of a task in this process, from its claim until its
// outcome is written.
type attempt struct {
	e      *Engine
	claim  db.ClaimID
	task   jobs.Task
	batch  *batch         // batch of the attempt; nil if the attempt belongs to no batch
	seat   *usercode.Seat // place in the batch; nil if batch is nil
	ctx    context.Context
	cancel context.CancelCauseFunc
	output atomic.Pointer[exec.Capture] // output of the attempt; nil while it has printed nothing

	slotless bool      // whether it has no slot: it waits for one, has passed it on, or another of its batch has it; guarded by e.mu
	deadline time.Time // time at which the attempt's processes must be dead, unless a heartbeat renews the lease; guarded by e.mu

	kill     chan struct{} // closed when the command must be killed without a grace period
	killOnce sync.Once
	fenced   atomic.Bool // whether another worker owns the task now; this process then stores nothing more about the attempt

	report   atomic.Pointer[jobs.Progress] // last report of progress; nil if there is none
	toReport atomic.Bool                   // whether the report is about to be stored
	steps    steps                         // steps of the function; empty until the function calls the first step
	txCalled atomic.Bool                   // whether the function has called FinishTx
	inTx     atomic.Int64                  // time of the FinishTx that succeeded, in milliseconds; 0 if none did
	finishTx *sql.Tx                       // transaction of that FinishTx; only for FinishTx itself

	// end sets the following fields before it sends the attempt to
	// Engine.ended. If it isn't called, abandon or notStarted sets them.
	over     atomic.Bool
	outcome  taskspec.Outcome
	release  bool  // whether the attempt never started; its task then goes back to its queue
	startErr error // why a command could not be started, if the machine was the reason

	// RunCommand sets the following fields.
	childrenKilled, childrenLeft int // numbers of processes that the command left behind
	usage                        command.Usage
}

func newAttempt(e *Engine, task jobs.Task) *attempt {
	if e.c != nil && task.Job == command.Job && e.c.OutputLimit != 0 && task.OutputLimit == taskspec.DefaultOutputLimit {
		task.OutputLimit = max(e.c.OutputLimit, 0)
	}
	a := &attempt{e: e, task: task, claim: db.ClaimID{ID: task.ID, GenerationID: task.GenerationID}, kill: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancelCause(context.WithValue(context.Background(), attemptKey{}, a))
	return a
}

// unknownOptionDelay is the time by which a worker delays a task that has
// options of a newer version.
const unknownOptionDelay = time.Minute

// begin starts the attempt on its own goroutine. The goroutine sends the
// attempt to the channel Engine.ended when the attempt has ended. The goroutine
// of another attempt may call begin (passSlot). If begin and logStart copied
// the task (1 KB), the stack of that goroutine would grow once more: 2 % of the
// time of a short task.
func (a *attempt) begin() {
	a.e.logStart(a)
	if a.e.started != nil {
		a.e.started(a.task.ID)
	}

	go func() {
		began := now()
		ctx, unwatch, cancel := a.withTimeout(began)
		defer cancel() // after the outcome, which depends on the context

		var result json.RawMessage
		var err error
		panicked := usercode.Goexit() // nil when the handler has returned
		defer func() {                // a deferred function also runs when a handler panics or calls runtime.Goexit
			unwatch()
			if a.seat != nil {
				a.seat.Arrive() // tell the batch not to wait for this attempt, which may have ended before its function was called
			}
			if v := recover(); v != nil {
				panicked = usercode.Recovered(v)
			}
			if panicked != nil {
				result, err = nil, &taskspec.AttemptError{Reason: jobs.ReasonPanic, Msg: panicked.Error()}
			}
			a.end(now().Sub(began), result, err)
		}()

		if cause := a.tooLate(); cause != nil {
			err = &exec.NotStartedError{Err: cause}
		} else if unknown := taskspec.CheckKnown(&a.task.Options); unknown != nil {
			// The attempt ends with a snooze, so that a worker of a newer
			// version may take the task.
			err = fmt.Errorf("%w: %w", unknown, jobs.Snooze(unknownOptionDelay))
		} else {
			result, err = a.e.o.Handlers[a.task.Job].Run(ctx, a.task)
		}

		panicked = nil
	}()
}

// withTimeout returns the context of the handler. At the timeout it ends with
// the error context.DeadlineExceeded and the cause jobs.ErrTimeout, and the
// attempt is stopped. Stopping a.ctx alone would end it as context.Canceled.
func (a *attempt) withTimeout(began time.Time) (_ context.Context, unwatch, cancel func()) {
	d := a.timeout()
	if d <= 0 {
		return a.ctx, func() {}, func() {}
	}

	ctx, cancel := context.WithDeadlineCause(a.ctx, began.Add(d), jobs.ErrTimeout)
	ended := func() {
		if errors.Is(context.Cause(ctx), jobs.ErrTimeout) {
			a.stop(jobs.ErrTimeout, false)
		}
	}
	stop := context.AfterFunc(ctx, ended)
	return ctx, func() {
		if !stop() {
			ended() // the handler may have returned before the call of AfterFunc
		}
	}, cancel
}

// tooLate returns the reason why an attempt must not begin, or nil. Either the
// attempt was stopped already, or this process was suspended for so long after
// the claim that the task may belong to another worker.
func (a *attempt) tooLate() error {
	if cause := context.Cause(a.ctx); cause != nil || !a.pastDeadline() {
		return cause
	}
	return jobs.ErrLost
}

// currentDeadline returns the time at which the processes of the attempt must
// be dead, unless a heartbeat renews its lease.
func (a *attempt) currentDeadline() time.Time {
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	return a.deadline
}

// pastDeadline reports whether the processes of the attempt must be dead by
// now, because no heartbeat renewed its lease.
func (a *attempt) pastDeadline() bool { return !now().Before(a.currentDeadline()) }

// end records the outcome of the attempt and sends the attempt to the loop.
func (a *attempt) end(took time.Duration, result json.RawMessage, err error) {
	a.closeOutput()
	if !a.over.CompareAndSwap(false, true) {
		return // abandon has already recorded an outcome
	}
	if a.txCalled.Load() {
		if result = nil; err == nil { // the database ignores err if the transaction of FinishTx was committed
			err = errNotCommitted
		}
	}

	a.setOutcome(a.classify(result, err), took)
	if output := a.output.Load(); output != nil {
		a.outcome.OutputBytes, a.outcome.OutputTruncated = output.Sizes()
		if a.task.Job == command.Job && taskspec.Failing(a.outcome.Reason) {
			a.outcome.ErrorLine = output.ErrorLine()
		}
	}

	a.outcome.ChildrenKilled, a.outcome.ChildrenLeft, a.outcome.Usage = a.childrenKilled, a.childrenLeft, a.usage
	next := a.e.passSlot(a)
	a.e.ended <- a
	if next != nil {
		next.begin()
	}
}

// timeout returns how long the attempt may run; 0 for no limit.
func (a *attempt) timeout() time.Duration {
	if a.task.Timeout == 0 && a.task.Job == command.Job && a.e.c != nil {
		return a.e.c.Timeout
	}
	return a.task.Timeout
}

// sigkill is the number of SIGKILL, the signal with which runner kills
// commands.
const sigkill = 9

// classify returns the outcome of an attempt that has ended. No other function
// decides the outcome. The command itself, its guardian, a timeout, a cancel
// request, a shutdown and the heartbeat can each end an attempt, and several of
// them may do so at once. The rules, in this order:
//
//   - Without an error the attempt is completed.
//   - The attempt is lost if its guardian died, or if the guardian killed the
//     command because the lease expired. It is also lost if anyone killed the
//     command after the lease had expired.
//   - If the attempt was being stopped, its error gets the reason of the first
//     stop.
//   - Any other error is an error of the attempt itself.
//
// The outcome does not matter for an attempt whose claim was revoked. The
// database refuses the outcome of such an attempt, and the reaper records the
// loss.
func (a *attempt) classify(result json.RawMessage, err error) taskspec.Outcome {
	decided, isDecided := err.(usercode.Decided) //nolint:errorlint // errors.As could call a method of the program's error
	if isDecided {
		err = decided.Err
	}

	o := taskspec.OutcomeOf(result, err)
	if err == nil && o.Reason == "" {
		if a.task.Job == command.Job {
			o.ExitCode = new(0)
		}
		return o
	}

	var lost bool
	var notStarted *exec.NotStartedError
	// OutcomeOf has recorded the panic of a method of err.
	_ = usercode.Call(func() { lost, _ = exec.IsLoss(err), errors.As(err, &notStarted) })
	if notStarted != nil {
		a.release, a.startErr = true, notStarted.Err
		return taskspec.Outcome{}
	}

	cause := context.Cause(a.ctx)
	if isDecided {
		cause = nil
	}

	switch {
	case lost && (cause == nil || errors.Is(cause, jobs.ErrShutdown)):
		o.Reason = jobs.ReasonLost
	case cause == nil && o.Signal == sigkill && a.pastDeadline():
		o.Reason, o.Error, o.Signal = jobs.ReasonLost, "killed after the end of its lease", 0
	case errors.Is(cause, jobs.ErrTimeout):
		o.Reason, o.Error = jobs.ReasonTimeout, fmt.Sprintf("ran for longer than %v", a.timeout())
	case errors.Is(cause, jobs.ErrCancelled):
		o.Reason, o.Error = jobs.ReasonCancelled, "cancelled"
	case errors.Is(cause, jobs.ErrShutdown):
		o.Reason, o.Error = jobs.ReasonShutdown, "its worker stopped"
	case errors.Is(cause, jobs.ErrLost):
		o.Reason, o.Error = jobs.ReasonLost, "its worker could not renew its lease"
	}

	return o
}

// stop ends the context of the attempt. The context keeps the cause of the
// first call. If kill is true, stop also makes the command die without a grace
// period.
func (a *attempt) stop(cause error, kill bool) {
	if kill { // close the channel first: when the context ends, a goroutine checks whether the channel is closed
		a.killOnce.Do(func() { close(a.kill) })
	}
	a.cancel(cause)
}

// abandon gives up an attempt that does not end. It returns false if the
// attempt has ended in the meantime.
func (a *attempt) abandon() bool {
	if !a.over.CompareAndSwap(false, true) {
		return false
	}
	a.closeOutput()
	a.setOutcome(taskspec.Outcome{Reason: jobs.ReasonShutdown, Error: "its worker stopped, but the attempt did not"},
		now().Sub(a.task.StartedAt))
	return true
}

// setOutcome sets the outcome with the times of the attempt.
func (a *attempt) setOutcome(o taskspec.Outcome, took time.Duration) {
	o.Started, o.Finished, o.Duration = a.task.StartedAt, now(), took
	a.outcome = o
}

// notStarted marks the attempt as never started, so that its task goes back to
// its queue.
func (a *attempt) notStarted() *attempt {
	a.over.Store(true)
	a.release = true
	return a
}

// finish returns the outcome of the attempt in the form that the database
// writes.
func (a *attempt) finish() db.Finish {
	if a.release {
		return db.Finish{Task: a.task, Release: true}
	}

	f := db.Finish{Task: a.task, Outcome: a.outcome, Progress: a.progress()}
	if output := a.output.Load(); output != nil {
		f.Output = output.Rest()
	}
	if at := a.inTx.Load(); at != 0 {
		f.InTx = time.UnixMilli(at)
	}
	return f
}
