package jobs

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

var at = time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)

func exitWith(code int) Outcome { return Outcome{Reason: ReasonExit, Error: "exit", ExitCode: &code} }

// outcomes are the ends that an attempt can have, by name.
func outcomes() map[string]Outcome {
	half := 30 * time.Minute
	all := map[string]Outcome{
		"completed": {Result: json.RawMessage(`1`)},
		"exit 1":    exitWith(1),
		"exit 75":   exitWith(75),
		"retry in":  {Reason: ReasonError, Error: "later", retryIn: &half},
		"snooze":    {snooze: &half},
	}
	for _, reason := range []Reason{ReasonSignal, ReasonTimeout, ReasonError, ReasonPanic, ReasonStart, ReasonLost, ReasonShutdown,
		ReasonCancelled} {
		all[string(reason)] = Outcome{Reason: reason, Error: string(reason)}
	}
	return all
}

// expect is the contract of section 6.6 of the command line, said again in other words than Next says it.
func expect(name string, asked, lastAttempt, lastLoss, never bool) (State, Reason) {
	o := outcomes()[name]
	switch {
	case name == "completed":
		return Completed, "" // what ends the task anyway wins over a cancel request
	case lastAttempt && o.Reason != ReasonLost && o.Reason != ReasonShutdown && o.Reason != ReasonCancelled && name != "snooze":
		return Failed, o.Reason
	case asked || o.Reason == ReasonCancelled:
		return Cancelled, ReasonCancelled
	case name == "lost" && lastLoss, name == "shutdown" && never:
		return Failed, o.Reason
	case name == "lost", name == "shutdown":
		return Pending, o.Reason
	case name == "snooze":
		return Scheduled, ""
	default:
		return Retrying, o.Reason
	}
}

func TestNextForEveryOutcome(t *testing.T) {
	for name, o := range outcomes() {
		for _, asked := range []bool{false, true} {
			for _, attempt := range []int{1, 2, 3} {
				for _, losses := range []int{0, 1, 2} {
					for _, maxLosses := range []int{0, 2} {
						if losses > maxLosses {
							continue
						}
						task := Task{ID: 7, State: Running, Attempt: attempt, MaxAttempts: 3, Losses: losses, MaxLosses: maxLosses,
							Options: DefaultOptions()}
						if asked {
							task.CancelRequestedAt, task.CancelText = at, "asked"
						}
						c := Next(task, o, at)
						state, reason := expect(name, asked, attempt == 3, losses == maxLosses, maxLosses == 0)
						if c.State != state || c.Reason != reason {
							t.Errorf("%s, asked %v, attempt %d of 3, %d losses of %d: %s (%s), want %s (%s)",
								name, asked, attempt, losses, maxLosses, c.State, c.Reason, state, reason)
						}
						checkChange(t, task, o, c)
					}
				}
			}
		}
	}
}

// checkChange checks what holds for every change, whatever led to it.
func checkChange(t *testing.T, task Task, o Outcome, c Change) {
	t.Helper()
	what := fmt.Sprintf("%+v with %+v becomes %+v", task, o, c)
	if !CanMove(Running, c.State) {
		t.Errorf("no such move: %s", what)
	}
	if c.RunAt.IsZero() != (c.State != Retrying && c.State != Scheduled) || c.RunAt.Before(at) && !c.RunAt.IsZero() {
		t.Errorf("run_at does not fit: %s", what)
	}
	if c.Attempt < 0 || c.Attempt > task.MaxAttempts || !c.State.Finished() && c.Attempt >= task.MaxAttempts {
		t.Errorf("attempts beyond the limit: %s", what)
	}
	if c.Losses < task.Losses || c.Losses > task.MaxLosses+1 || !c.State.Finished() && c.Losses > task.MaxLosses {
		t.Errorf("losses beyond the limit: %s", what)
	}
	if c.AttemptState != Completed && c.AttemptState != Failed && c.AttemptState != Cancelled && c.AttemptState != Snoozed {
		t.Errorf("no state of an attempt: %s", what)
	}
	if want := o.Reason != ReasonLost && o.Reason != ReasonShutdown && c.AttemptState != Snoozed; c.Counted != want ||
		c.Counted != (c.Attempt == task.Attempt) {
		t.Errorf("counted wrongly: %s", what)
	}
	if (c.Losses > task.Losses) != (o.Reason == ReasonLost) {
		t.Errorf("a loss is counted that was none, or is not: %s", what)
	}
	if c.State == Completed && (c.Reason != "" || c.Error != "") || c.State != Completed && c.State != Scheduled && c.Reason == "" {
		t.Errorf("the reason does not fit: %s", what)
	}
}

func TestNextRetriesACommandOnlyAfterTheCodesOfRetryOn(t *testing.T) {
	task := Task{ID: 1, Attempt: 1, MaxAttempts: 3, MaxLosses: 3, Options: Options{RetryOn: "75,100-111"}}
	for name, want := range map[string]State{"exit 1": Failed, "exit 75": Retrying, "signal": Retrying, "timeout": Retrying,
		"start": Retrying, "lost": Pending} {
		if c := Next(task, outcomes()[name], at); c.State != want {
			t.Errorf("%s: %s, want %s", name, c.State, want)
		}
	}
}

func TestNextTakesTheDelayFromTheBackoffOrFromTheError(t *testing.T) {
	task := Task{ID: 9, Attempt: 2, MaxAttempts: 5, Options: Options{Backoff: Backoff{Linear, time.Minute, time.Hour}}}
	if c := Next(task, outcomes()["error"], at); c.RunAt != at.Add(task.Backoff.After(9, 2)) {
		t.Errorf("due at %v", c.RunAt)
	}
	for _, name := range []string{"retry in", "snooze"} {
		if c := Next(task, outcomes()[name], at); c.RunAt != at.Add(30*time.Minute) {
			t.Errorf("%s: due at %v", name, c.RunAt)
		}
	}
}

func TestNextKeepsWhatWasSaidAboutTheCancel(t *testing.T) {
	task := Task{Attempt: 1, MaxAttempts: 2, CancelRequestedAt: at, CancelText: "by ann: enough"}
	if c := Next(task, outcomes()["signal"], at); c.Error != task.CancelText || c.AttemptState != Failed {
		t.Errorf("got %+v; want Error = task.CancelText, AttemptState = Failed", c)
	}
	task.CancelRequestedAt = time.Time{}
	if c := Next(task, OutcomeOf(nil, Cancel(fmt.Errorf("no such user"))), at); c.State != Cancelled || c.Error != "no such user" {
		t.Errorf("a function's own cancel: %+v", c)
	}
}

func TestATimeoutIsNoSnoozeWhateverTheFunctionReturned(t *testing.T) {
	o := OutcomeOf(nil, Snooze(time.Hour))
	o.Reason, o.Error = ReasonTimeout, "ran for longer than 1s" // as the worker says it of an attempt that it stopped
	if c := Next(Task{Attempt: 1, MaxAttempts: 1}, o, at); c.State != Failed || c.Reason != ReasonTimeout || !c.Counted {
		t.Errorf("got %+v; want State = Failed, Reason = ReasonTimeout, Counted", c)
	}
}

func FuzzNext(f *testing.F) {
	f.Add(int64(1), 1, 3, 0, 3, byte(0), false, int64(0), int64(10), int64(100))
	f.Add(int64(-5), 1<<31-1, 1<<31-1, 1<<31-1, 0, byte(5), true, int64(-1), int64(1)<<62, int64(1)<<62)
	names := make([]string, 0, 16)
	for name := range outcomes() {
		names = append(names, name)
	}
	f.Fuzz(func(t *testing.T, id int64, attempt, maxAttempts, losses, maxLosses int, which byte, asked bool, in, delay, most int64) {
		maxAttempts = max(1, maxAttempts&0x7fffffff)
		maxLosses &= 0x7fffffff
		task := Task{ID: id, Attempt: 1 + (attempt&0x7fffffff)%maxAttempts, MaxAttempts: maxAttempts, MaxLosses: maxLosses,
			Losses: (losses & 0x7fffffff) % (maxLosses + 2), // a row changed by hand may have one too many
			Options: Options{Backoff: Backoff{Strategy: []Strategy{Fixed, Linear, Exponential, "?"}[which%4], Delay: time.Duration(delay),
				Max: time.Duration(most)}}}
		if asked {
			task.CancelRequestedAt = at
		}
		o := outcomes()[names[int(which)%len(names)]]
		if o.retryIn != nil {
			o.retryIn = new(max(0, time.Duration(in)))
		}
		c := Next(task, o, at)
		if task.Losses > maxLosses { // it had more losses than it may wait or run with: the table refuses one more
			if c.Losses > maxLosses+1 {
				t.Errorf("%+v becomes %+v", task, c)
			}
			return
		}
		checkChange(t, task, o, c)
	})
}
