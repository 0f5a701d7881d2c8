package taskspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit/transitions"
)

var at = time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)

func exitWith(code int) Outcome {
	return Outcome{Reason: jobs.ReasonExit, Error: "exit", ExitCode: &code}
}

// outcomes returns one Outcome, with a name, for each way in which an attempt
// can end.
func outcomes() map[string]Outcome {
	half := 30 * time.Minute
	all := map[string]Outcome{
		"completed": {Result: json.RawMessage(`1`)},
		"exit 1":    exitWith(1),
		"exit 75":   exitWith(75),
		"retry in":  {Reason: jobs.ReasonError, Error: "later", retryIn: &half},
		"snooze":    {snooze: &half},
	}
	for _, reason := range []jobs.Reason{jobs.ReasonSignal, jobs.ReasonTimeout, jobs.ReasonError, jobs.ReasonArgs, jobs.ReasonPanic,
		jobs.ReasonStart, jobs.ReasonMemory, jobs.ReasonLost, jobs.ReasonShutdown, jobs.ReasonCancelled} {
		all[string(reason)] = Outcome{Reason: reason, Error: string(reason)}
	}
	return all
}

// wantNext returns the state and the reason that docs/states.md and
// docs/reliability.md promise. It shares no code with Next. The parameter
// cancelled is true if somebody has asked to cancel the task. The parameter
// lastLoss is true if one more loss exceeds MaxLosses. The parameter noLosses
// is true if MaxLosses is 0.
func wantNext(name string, cancelled, lastAttempt, lastLoss, noLosses bool) (jobs.State, jobs.Reason) {
	o := outcomes()[name]
	switch {
	case name == "completed":
		return jobs.Completed, "" // the task is done, so a request to cancel it has no effect
	case lastAttempt && o.Reason != jobs.ReasonLost && o.Reason != jobs.ReasonShutdown && o.Reason != jobs.ReasonCancelled &&
		name != "snooze":
		return jobs.Failed, o.Reason
	case cancelled || o.Reason == jobs.ReasonCancelled:
		return jobs.Cancelled, jobs.ReasonCancelled
	case name == "lost" && lastLoss, name == "shutdown" && noLosses:
		return jobs.Failed, o.Reason
	case name == "lost", name == "shutdown":
		return jobs.Pending, o.Reason
	case name == "snooze":
		return jobs.Scheduled, ""
	default:
		return jobs.Retrying, o.Reason
	}
}

func TestNextForEveryOutcome(t *testing.T) {
	for name, o := range outcomes() {
		for _, cancelled := range []bool{false, true} {
			for _, attempt := range []int{1, 2, 3} {
				for _, losses := range []int{0, 1, 2} {
					for _, maxLosses := range []int{0, 2} {
						if losses > maxLosses {
							continue
						}
						task := jobs.Task{ID: 7, State: jobs.Running, Attempt: attempt, MaxAttempts: 3, Losses: losses,
							MaxLosses: maxLosses,
							Options:   jobs.NewSpec("").Options}
						if cancelled {
							task.CancelRequestedAt, task.CancelText = at, "requested"
						}
						c := Next(task, o, at)
						state, reason := wantNext(name, cancelled, attempt == 3, losses == maxLosses, maxLosses == 0)
						if c.State != state || c.Reason != reason {
							t.Errorf("%s, cancel requested: %v, attempt %d of 3, %d of %d losses: got %s (%s), want %s (%s)",
								name, cancelled, attempt, losses, maxLosses, c.State, c.Reason, state, reason)
						}
						checkChange(t, task, o, c)
					}
				}
			}
		}
	}
}

// checkChange checks rules that every change must follow.
func checkChange(t *testing.T, task jobs.Task, o Outcome, c Change) {
	t.Helper()
	wrong := func(format string, args ...any) {
		t.Helper()
		t.Errorf("attempt %d of %d, %d of %d losses, an end with reason %q: %s", task.Attempt, task.MaxAttempts, task.Losses,
			task.MaxLosses, o.Reason, fmt.Sprintf(format, args...))
	}
	if !transitions.Allowed(jobs.Running, c.State) {
		wrong("got state %s, want one that a running task can change to", c.State)
	}
	if c.RunAt.IsZero() != (c.State != jobs.Retrying && c.State != jobs.Scheduled) || c.RunAt.Before(at) && !c.RunAt.IsZero() {
		wrong("got run_at %v; want none, or for a retrying or scheduled task %v or later", c.RunAt, at)
	}
	if c.Attempt < 0 || c.Attempt > task.MaxAttempts || !c.State.Finished() && c.Attempt >= task.MaxAttempts {
		wrong("got attempt %d, want at most %d, and fewer if the task is unfinished", c.Attempt, task.MaxAttempts)
	}
	if c.Losses < task.Losses || c.Losses > task.MaxLosses+1 || !c.State.Finished() && c.Losses > task.MaxLosses {
		wrong("got %d losses; want %d or more, and at most %d if the task is unfinished", c.Losses, task.Losses, task.MaxLosses)
	}
	if !slices.Contains([]jobs.State{jobs.Completed, jobs.Failed, jobs.Cancelled, Snoozed}, c.AttemptState) {
		wrong("got attempt state %q, want completed, failed, cancelled or snoozed", c.AttemptState)
	}
	if want := o.Reason != jobs.ReasonLost && o.Reason != jobs.ReasonShutdown && c.AttemptState != Snoozed; c.Counted != want ||
		c.Counted != (c.Attempt == task.Attempt) {
		wrong("got attempt %d, counted: %v; want counted: %v, and the attempt unchanged only if it is counted", c.Attempt, c.Counted, want)
	}
	if (c.Losses > task.Losses) != (o.Reason == jobs.ReasonLost) {
		wrong("got %d losses after %d, want one more if and only if the attempt was lost", c.Losses, task.Losses)
	}
	if c.State == jobs.Completed && (c.Reason != "" || c.Error != "") ||
		c.State != jobs.Completed && c.State != jobs.Scheduled && c.Reason == "" {
		wrong("got state %s, reason %q and error %q; want a reason unless completed or scheduled, and none if completed",
			c.State, c.Reason, c.Error)
	}
}

func TestNextRetriesCommandOnlyAfterCodesOfRetryOn(t *testing.T) {
	task := jobs.Task{ID: 1, Attempt: 1, MaxAttempts: 3, MaxLosses: 3,
		Options: jobs.Options{Settings: command.Settings{RetryOn: "75,100-111"}}}
	for name, want := range map[string]jobs.State{"exit 1": jobs.Failed, "exit 75": jobs.Retrying, "signal": jobs.Retrying,
		"timeout": jobs.Retrying,
		"start":   jobs.Retrying, "lost": jobs.Pending} {
		if c := Next(task, outcomes()[name], at); c.State != want {
			t.Errorf("%s: got state %s, want %s", name, c.State, want)
		}
	}
}

func TestNextTakesDelayFromBackoffOrFromError(t *testing.T) {
	task := jobs.Task{ID: 9, Attempt: 2, MaxAttempts: 5,
		Options: jobs.Options{Backoff: jobs.Backoff{Strategy: jobs.BackoffLinear, Delay: time.Minute, Max: time.Hour}}}
	for name, delay := range map[string]time.Duration{"error": Delay(task.Backoff, 9, 2), "retry in": 30 * time.Minute,
		"snooze": 30 * time.Minute} {
		if c := Next(task, outcomes()[name], at); c.RunAt != at.Add(delay) {
			t.Errorf("%s: got start time %v, want %v", name, c.RunAt, at.Add(delay))
		}
	}
}

func TestNextKeepsTextOfCancelRequest(t *testing.T) {
	task := jobs.Task{Attempt: 1, MaxAttempts: 2, CancelRequestedAt: at, CancelText: "by ann: enough"}
	if c := Next(task, outcomes()["signal"], at); c.Error != task.CancelText || c.AttemptState != jobs.Failed {
		t.Errorf("a cancel request: got error %q and attempt state %s, want %q and %s", c.Error, c.AttemptState, task.CancelText,
			jobs.Failed)
	}
	task.CancelRequestedAt = time.Time{}
	if c := Next(task, OutcomeOf(nil, jobs.Cancel(fmt.Errorf("no such user"))),
		at); c.State != jobs.Cancelled || c.Error != "no such user" {
		t.Errorf(`a cancel by the function: got state %s and error %q, want %s and "no such user"`, c.State, c.Error, jobs.Cancelled)
	}
}

func TestFailEndsTaskThatHasAttemptsLeft(t *testing.T) {
	task := jobs.Task{Attempt: 1, MaxAttempts: 5}
	o := OutcomeOf(nil, fmt.Errorf("mail: %w", jobs.Fail(errors.New("no such address"))))
	if c := Next(task, o, at); c.State != jobs.Failed || c.Reason != jobs.ReasonError || c.Error != "mail: no such address" {
		t.Errorf(`got state %s (%s) and error %q, want %s (%s) and "mail: no such address"`, c.State, c.Reason, c.Error, jobs.Failed,
			jobs.ReasonError)
	}
	// After a timeout the error of the function does not count, because the
	// function may have returned it only when the worker stopped the attempt.
	o.Reason = jobs.ReasonTimeout
	if c := Next(task, o, at); c.State != jobs.Retrying {
		t.Errorf("after a timeout: got state %s, want %s", c.State, jobs.Retrying)
	}
}

func TestTimeoutOverridesSnooze(t *testing.T) {
	o := OutcomeOf(nil, jobs.Snooze(time.Hour))
	o.Reason, o.Error = jobs.ReasonTimeout, "ran for longer than 1s" // a worker that stops an attempt sets these values
	if c := Next(jobs.Task{Attempt: 1, MaxAttempts: 1}, o, at); c.State != jobs.Failed || c.Reason != jobs.ReasonTimeout || !c.Counted {
		t.Errorf("got state %s (%s), counted: %v; want %s (%s), counted", c.State, c.Reason, c.Counted, jobs.Failed, jobs.ReasonTimeout)
	}
}

func FuzzNext(f *testing.F) {
	f.Add(int64(1), 1, 3, 0, 3, byte(0), false, int64(0), int64(10), int64(100))
	f.Add(int64(-5), 1<<31-1, 1<<31-1, 1<<31-1, 0, byte(5), true, int64(-1), int64(1)<<62, int64(1)<<62)
	names := make([]string, 0, 16)
	for name := range outcomes() {
		names = append(names, name)
	}
	f.Fuzz(func(t *testing.T, id int64, attempt, maxAttempts, losses, maxLosses int, which byte, cancelled bool, in, delay, most int64) {
		maxAttempts = max(1, maxAttempts&0x7fffffff)
		maxLosses &= 0x7fffffff
		task := jobs.Task{ID: id, Attempt: 1 + (attempt&0x7fffffff)%maxAttempts, MaxAttempts: maxAttempts, MaxLosses: maxLosses,
			Losses: (losses & 0x7fffffff) % (maxLosses + 2), // the table "tasks" accepts up to MaxLosses+1 losses
			Options: jobs.Options{Backoff: jobs.Backoff{
				Strategy: []jobs.BackoffStrategy{jobs.BackoffFixed, jobs.BackoffLinear, jobs.BackoffExponential, "?"}[which%4],
				Delay:    time.Duration(delay),
				Max:      time.Duration(most)}}}
		if cancelled {
			task.CancelRequestedAt = at
		}
		o := outcomes()[names[int(which)%len(names)]]
		if o.retryIn != nil {
			o.retryIn = new(max(0, time.Duration(in)))
		}
		c := Next(task, o, at)
		// A running task has at most MaxLosses losses, unless a user has
		// changed its row with SQL. The row can then have one loss more.
		if task.Losses > maxLosses {
			if c.Losses > maxLosses+1 {
				t.Errorf("got %d losses after %d, want at most %d", c.Losses, task.Losses, maxLosses+1)
			}
			return
		}
		checkChange(t, task, o, c)
	})
}
