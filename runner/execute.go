package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/exec"
)

// attempt is one execution of a task in this process, from its claim until its end is written.
type attempt struct {
	e      *engine
	claim  db.ClaimID
	task   jobs.Task
	ctx    context.Context
	cancel context.CancelCauseFunc
	output atomic.Pointer[exec.Capture] // of what it prints; nil: nothing yet

	deadline time.Time // of its processes, unless a heartbeat moves it; under e.mu

	kill     chan struct{} // closed: a command is to be killed without further grace
	killOnce sync.Once
	fenced   atomic.Bool // the task is no longer ours: nothing of it is written

	report   atomic.Pointer[jobs.Progress]   // the last one; nil: none
	toReport atomic.Bool                     // somebody is about to store it
	steps    atomic.Pointer[steps]           // nil: it has come to none
	inTx     atomic.Int64                    // when it tried to finish its task in a transaction of its own, in ms; 0: never
	txResult atomic.Pointer[json.RawMessage] // that of FinishTx; nil: none

	// Set before the attempt is sent on engine.ended, or by abandon.
	over    atomic.Bool
	outcome jobs.Outcome
	release bool  // it was never started
	trouble error // why a command could not be started, if that was the machine's fault
}

func newAttempt(e *engine, task jobs.Task) *attempt {
	a := &attempt{e: e, task: task, claim: db.ClaimID{ID: task.ID, GenerationID: task.GenerationID}, kill: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancelCause(context.WithValue(context.Background(), attemptKey{}, a))
	return a
}

// begin starts the attempt on a goroutine of its own, which sends it on engine.ended when it is over.
func (a *attempt) begin() {
	a.e.logStart(a)
	a.e.tellStart(a)
	go func() {
		began := now()
		var timer *time.Timer
		if d := a.timeout(); d > 0 {
			timer = time.AfterFunc(d, func() { a.stop(jobs.ErrTimeout, false) })
		}
		var result json.RawMessage
		var err error
		returned := false
		defer func() { // a deferred call sees panics, and handlers that call runtime.Goexit
			if timer != nil {
				timer.Stop()
			}
			if p := recover(); p != nil {
				err = &jobs.AttemptError{Reason: jobs.ReasonPanic, Msg: fmt.Sprintf("panic: %v\n\n%s", p, debug.Stack())}
			} else if !returned {
				err = &jobs.AttemptError{Reason: jobs.ReasonPanic, Msg: "the function ended its goroutine"}
			}
			a.end(now().Sub(began), result, err)
		}()
		if cause := a.late(); cause != nil {
			err = &exec.NotStartedError{Err: cause}
		} else if unknown := a.task.CheckKnown(); unknown != nil { // a worker of a newer version may take it meanwhile
			err = fmt.Errorf("%w: %w", unknown, jobs.Snooze(unknownOptionDelay))
		} else {
			result, err = a.e.handlers[a.task.Job](a.ctx, a.task)
		}
		returned = true
	}()
}

// unknownOptionDelay is how long a task is put off that has options of a newer version.
const unknownOptionDelay = time.Minute

// late is why an attempt must not begin: it was stopped already, or its process stood still for so long after the claim that the task may be
// another worker's by now.
func (a *attempt) late() error {
	if cause := context.Cause(a.ctx); cause != nil || !a.pastDeadline() {
		return cause
	}
	return jobs.ErrLost
}

// currentDeadline returns when the processes of the attempt must be dead, unless a heartbeat renews its lease.
func (a *attempt) currentDeadline() time.Time {
	a.e.mu.Lock()
	defer a.e.mu.Unlock()
	return a.deadline
}

// pastDeadline reports whether the processes of the attempt must be dead by now, because nobody renewed its lease.
func (a *attempt) pastDeadline() bool { return !now().Before(a.currentDeadline()) }

// sigkill is the number of SIGKILL, by which runner kills commands.
const sigkill = 9

// end settles what happened and hands the attempt to the loop.
func (a *attempt) end(took time.Duration, result json.RawMessage, err error) {
	if output := a.output.Load(); output != nil {
		output.Close()
	}
	if !a.over.CompareAndSwap(false, true) {
		return // given up: its end is written already
	}
	if a.inTx.Load() != 0 {
		if result = nil; err == nil { // if it was committed, this is never looked at
			err = errNotCommitted
		}
	}
	a.outcome = a.judge(result, err)
	a.outcome.Started, a.outcome.Finished, a.outcome.Duration = a.task.StartedAt, now(), took
	if output := a.output.Load(); output != nil {
		a.outcome.OutputBytes, a.outcome.OutputTruncated = output.Sizes()
	}
	a.e.ended <- a
}

func (a *attempt) timeout() time.Duration {
	if a.task.Timeout == 0 && a.task.Job == jobs.CommandJob {
		return a.e.r.options.Timeout
	}
	return a.task.Timeout
}

// judge decides what the end of an attempt means. No other place does, whoever was first of those that end attempts: the command itself,
// its guardian, a timeout, a cancel request, a shutdown, the heartbeat. In this order:
//
//   - No error: it is completed.
//   - The guardian died, or killed the command at the end of its lease, or the command was killed after that by whomever: it is lost.
//   - An error of an attempt that was being stopped has the reason of the first stop.
//   - All else is an error of its own.
//
// An attempt whose claim was revoked has no end here: the database refuses it, and the reaper records the loss.
func (a *attempt) judge(result json.RawMessage, err error) jobs.Outcome {
	if err == nil && result != nil {
		if err = jobs.ValidResult(result); err != nil {
			result = nil
		}
	}
	if trouble, ok := errors.AsType[*exec.NotStartedError](err); ok {
		a.release, a.trouble = true, trouble.Err
		return jobs.Outcome{}
	}
	o := jobs.OutcomeOf(result, err)
	if err == nil {
		if a.task.Job == jobs.CommandJob {
			o.ExitCode = new(0)
		}
		return o
	}
	switch cause := context.Cause(a.ctx); {
	case exec.IsLoss(err) && (cause == nil || errors.Is(cause, jobs.ErrShutdown)):
		o.Reason, o.Error = jobs.ReasonLost, err.Error()
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

// stop ends the attempt's context, for the first cause it is given; kill leaves a command no grace.
func (a *attempt) stop(cause error, kill bool) {
	if kill { // first: who is woken by the end of the context looks at it
		a.killOnce.Do(func() { close(a.kill) })
	}
	a.cancel(cause)
}

// abandon gives up an attempt that does not end. It returns false when it has just ended after all.
func (a *attempt) abandon() bool {
	if !a.over.CompareAndSwap(false, true) {
		return false
	}
	at := now()
	a.outcome = jobs.Outcome{Reason: jobs.ReasonShutdown, Error: "its worker stopped, and it did not", Started: a.task.StartedAt,
		Finished: at, Duration: at.Sub(a.task.StartedAt)}
	return true
}

// notStarted makes the attempt one that gives its task back.
func (a *attempt) notStarted() *attempt {
	a.over.Store(true)
	a.release = true
	return a
}

// finish is what the attempt asks the database to write.
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

// runCommand executes the attempt of a command.
func runCommand(ctx context.Context, task jobs.Task, tee func(task jobs.Task, stream string, data []byte)) (json.RawMessage, error) {
	a := attemptFrom(ctx)
	if a == nil {
		return nil, errors.New("commands are run by Work only")
	}
	c := exec.Command{Worker: &a.e.commands, Task: task, Stop: a.ctx, Kill: a.kill, Deadline: a.currentDeadline, Output: a.printed()}
	c.Output.Tee = tee
	return c.Run()
}
