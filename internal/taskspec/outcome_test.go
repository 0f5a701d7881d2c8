package taskspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

func TestOutcomeOfUnwrapsErrors(t *testing.T) {
	cause := errors.New("no route")
	code := 3
	for i, wrap := range []func(error) error{
		func(err error) error { return err },
		func(err error) error { return fmt.Errorf("send: %w", err) },
		func(err error) error { return errors.Join(errors.New("first"), err) },
		func(err error) error { return fmt.Errorf("%w and %w", errors.New("first"), fmt.Errorf("x: %w", err)) },
	} {
		if o := OutcomeOf(nil, wrap(jobs.RetryIn(time.Minute, cause))); o.Reason != jobs.ReasonError || o.retryIn == nil ||
			*o.retryIn != time.Minute || !strings.Contains(o.Error, "no route") {
			t.Errorf(`RetryIn: got %+v, want reason %q, an error with "no route" and a retry in %v`, o, jobs.ReasonError, time.Minute)
		}
		if o := OutcomeOf(nil, wrap(jobs.Snooze(time.Minute))); o.Reason != "" || (o.Error == "") != (i == 0) || o.snooze == nil ||
			*o.snooze != time.Minute {
			t.Errorf("Snooze: got %+v; want no reason, a snooze of %v, and an error only if other errors were joined", o, time.Minute)
		}
		if o := OutcomeOf(nil, wrap(jobs.Cancel(cause))); o.Reason != jobs.ReasonCancelled || !strings.Contains(o.Error, "no route") {
			t.Errorf(`Cancel: got %+v, want reason %q and an error with "no route"`, o, jobs.ReasonCancelled)
		}
		exited := &AttemptError{Reason: jobs.ReasonExit, ExitCode: &code, Msg: "exit status 3"}
		if o := OutcomeOf(nil, wrap(exited)); o.Reason != jobs.ReasonExit ||
			o.ExitCode == nil || *o.ExitCode != 3 {
			t.Errorf("AttemptError: got %+v, want reason %q and exit code 3", o, jobs.ReasonExit)
		}
		for name, err := range map[string]error{"RetryIn": jobs.RetryIn(0, cause), "Cancel": jobs.Cancel(cause), "Fail": jobs.Fail(cause)} {
			if !errors.Is(wrap(err), cause) {
				t.Errorf("%s: errors.Is does not find the cause, want it found", name)
			}
		}
	}
}

func TestOutcomeOfResultWithAndWithoutError(t *testing.T) {
	if o := OutcomeOf(json.RawMessage(`1`), nil); o.Reason != "" || o.Error != "" || string(o.Result) != "1" {
		t.Errorf("got reason %q, error %q and result %s; want result 1 only", o.Reason, o.Error, o.Result)
	}
	if o := OutcomeOf(json.RawMessage(`{"partial":true}`), errors.New("x")); o.Reason != jobs.ReasonError || o.Result == nil {
		t.Errorf("a result and an error: got reason %q and result %q, want reason %q and the result", o.Reason, o.Result, jobs.ReasonError)
	}
}

func TestErrorWithoutTextFailsTask(t *testing.T) {
	for _, err := range []error{&AttemptError{}, &AttemptError{Msg: "x"}, errors.New(""), jobs.RetryIn(0, &AttemptError{})} {
		o := OutcomeOf(nil, err)
		if c := Next(jobs.Task{Attempt: 1, MaxAttempts: 1}, o, at); c.State != jobs.Failed || c.Reason != jobs.ReasonError {
			t.Errorf("%#v: got state %s (%s), want %s (%s)", err, c.State, c.Reason, jobs.Failed, jobs.ReasonError)
		}
	}
}

func TestOutcomeOfDropsInvalidResults(t *testing.T) {
	for _, result := range []string{"{", "", `"` + strings.Repeat("x", usercode.MaxResult) + `"`, "\"\xff\"",
		strings.Repeat("[", usercode.MaxDepth+1) +
			strings.Repeat("]", usercode.MaxDepth+1)} {
		for _, err := range []error{nil, errors.New("x"), jobs.Snooze(1)} {
			if o := OutcomeOf(json.RawMessage(result), err); o.Result != nil || err == nil && o.Reason != jobs.ReasonError {
				t.Errorf("%.20q with error %v: got reason %q, error %.200q and a result of %d bytes; want no result, and a reason",
					result, err, o.Reason, o.Error, len(o.Result))
			}
		}
	}
	if o := OutcomeOf(nil, nil); o.Reason != "" {
		t.Errorf("no result and no error: got reason %q, want none", o.Reason)
	}
}

func TestOutcomeOfReplacesNegativeDelaysAndMissingCauses(t *testing.T) {
	if o := OutcomeOf(nil, jobs.RetryIn(-time.Hour, nil)); *o.retryIn != 0 || o.Error == "" {
		t.Errorf("RetryIn: got delay %v and error %q, want no delay and an error text", *o.retryIn, o.Error)
	}
	if o := OutcomeOf(nil, jobs.Snooze(-1)); o.snooze != nil || o.Reason != jobs.ReasonError {
		t.Errorf("Snooze: got delay %v and reason %q, want an error", o.snooze, o.Reason)
	}
	for _, reason := range []jobs.Reason{"weird", jobs.ReasonLost, jobs.ReasonShutdown, jobs.ReasonExpired} {
		if o := OutcomeOf(nil, &AttemptError{Reason: reason}); o.Reason != jobs.ReasonError {
			t.Errorf("AttemptError with the reason %s: got %q, want %q", reason, o.Reason, jobs.ReasonError)
		}
	}
	for name, err := range map[string]error{"Cancel": jobs.Cancel(nil), "Fail": jobs.Fail(nil)} {
		if o := OutcomeOf(nil, err); o.Error == "" {
			t.Errorf("%s: got no error text, want one", name)
		}
	}
}

func FuzzCutError(f *testing.F) {
	for _, text := range []string{"", "x", "\xff", "a\x00b", strings.Repeat("é", MaxError),
		strings.Repeat("x", MaxError-1) + "😀",
		strings.Repeat("\xff", MaxError)} {
		f.Add(text, 1)
		f.Add(text, 9000)
	}
	f.Fuzz(func(t *testing.T, text string, times int) {
		text = strings.Repeat(text, min(max(times, 1), 2*MaxError/max(len(text), 1)+2))
		got := CutError(text)
		if !utf8.ValidString(got) || len(got) > MaxError || strings.Contains(got, "\x00") {
			t.Fatalf("%.50q: got %d bytes, valid UTF-8: %v; want at most %d bytes of valid UTF-8 without NUL",
				text, len(got), utf8.ValidString(got), MaxError)
		}
		if len(text) <= MaxError && utf8.ValidString(text) && !strings.Contains(text, "\x00") && got != text {
			t.Fatalf("a valid short text: got %.50q, want it unchanged, %.50q", got, text)
		}
		if again := CutError(got); again != got {
			t.Fatalf("a text that was cut before: got %.50q, want it unchanged, %.50q", again, got)
		}
		if utf8.ValidString(text) && len(got) < min(len(text), MaxError-6) {
			t.Fatalf("a valid text of %d bytes: got %d bytes, want at least %d", len(text), len(got), min(len(text), MaxError-6))
		}
	})
}
