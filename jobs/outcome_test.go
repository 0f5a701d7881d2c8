package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestOutcomeOfKnowsItsErrorsHoweverTheyAreWrapped(t *testing.T) {
	cause := errors.New("no route")
	code := 3
	for i, wrap := range []func(error) error{
		func(err error) error { return err },
		func(err error) error { return fmt.Errorf("send: %w", err) },
		func(err error) error { return errors.Join(errors.New("first"), err) },
		func(err error) error { return fmt.Errorf("%w and %w", errors.New("first"), fmt.Errorf("x: %w", err)) },
	} {
		if o := OutcomeOf(nil, wrap(RetryIn(time.Minute, cause))); o.Reason != ReasonError || o.retryIn == nil ||
			*o.retryIn != time.Minute || !strings.Contains(o.Error, "no route") {
			t.Errorf("RetryIn: %+v", o)
		}
		if o := OutcomeOf(nil, wrap(Snooze(time.Minute))); o.Reason != "" || (o.Error == "") != (i == 0) || o.snooze == nil ||
			*o.snooze != time.Minute {
			t.Errorf("Snooze: %+v", o)
		}
		if o := OutcomeOf(nil, wrap(Cancel(cause))); o.Reason != ReasonCancelled || !strings.Contains(o.Error, "no route") {
			t.Errorf("Cancel: %+v", o)
		}
		if o := OutcomeOf(nil, wrap(&AttemptError{Reason: ReasonExit, ExitCode: &code, Msg: "exit status 3"})); o.Reason != ReasonExit ||
			o.ExitCode == nil || *o.ExitCode != 3 {
			t.Errorf("AttemptError: %+v", o)
		}
		if !errors.Is(wrap(RetryIn(0, cause)), cause) || !errors.Is(wrap(Cancel(cause)), cause) {
			t.Error("the cause is hidden")
		}
	}
}

func TestOutcomeOfPlainReturns(t *testing.T) {
	if o := OutcomeOf(json.RawMessage(`1`), nil); o.Reason != "" || o.Error != "" || string(o.Result) != "1" {
		t.Errorf(`got %+v; want Reason = "", Error = "", string(Result) = "1"`, o)
	}
	if o := OutcomeOf(json.RawMessage(`{"partial":true}`), errors.New("x")); o.Reason != ReasonError || o.Result == nil {
		t.Errorf("a result beside an error is dropped: %+v", o)
	}
}

func TestAnErrorNeverLooksLikeASuccess(t *testing.T) {
	for _, err := range []error{&AttemptError{}, &AttemptError{Msg: "x"}, errors.New(""), RetryIn(0, &AttemptError{})} {
		o := OutcomeOf(nil, err)
		if c := Next(Task{Attempt: 1, MaxAttempts: 1}, o, at); c.State != Failed || c.Reason != ReasonError {
			t.Errorf("%#v becomes %+v", err, c)
		}
	}
}

func TestOutcomeOfDropsAResultThatCannotBeKept(t *testing.T) {
	for _, result := range []string{"{", "", `"` + strings.Repeat("x", MaxResult) + `"`, "\"\xff\"", strings.Repeat("[", MaxDepth+1) +
		strings.Repeat("]", MaxDepth+1)} {
		for _, err := range []error{nil, errors.New("x"), Snooze(1)} {
			if o := OutcomeOf(json.RawMessage(result), err); o.Result != nil || err == nil && o.Reason != ReasonError {
				t.Errorf("%.20q beside %v: %s, %.200s, a result of %d bytes", result, err, o.Reason, o.Error, len(o.Result))
			}
		}
	}
	if o := OutcomeOf(nil, nil); o.Reason != "" {
		t.Errorf("no result: %+v", o)
	}
}

func TestNegativeDelaysAreNoneAndMissingCausesHaveWords(t *testing.T) {
	if o := OutcomeOf(nil, RetryIn(-time.Hour, nil)); *o.retryIn != 0 || o.Error == "" {
		t.Errorf(`got %+v; want *retryIn = 0, Error != ""`, o)
	}
	if o := OutcomeOf(nil, Snooze(-1)); *o.snooze != 0 {
		t.Errorf("got %+v, want *snooze = 0", o)
	}
	if o := OutcomeOf(nil, Cancel(nil)); o.Error == "" {
		t.Errorf(`got %+v, want Error != ""`, o)
	}
}

func FuzzCutError(f *testing.F) {
	for _, text := range []string{"", "x", "\xff", "a\x00b", strings.Repeat("é", MaxError), strings.Repeat("x", MaxError-1) + "😀",
		strings.Repeat("\xff", MaxError)} {
		f.Add(text, 1)
		f.Add(text, 9000)
	}
	f.Fuzz(func(t *testing.T, text string, times int) {
		text = strings.Repeat(text, min(max(times, 1), 2*MaxError/max(len(text), 1)+2))
		got := CutError(text)
		if !utf8.ValidString(got) || len(got) > MaxError || strings.Contains(got, "\x00") {
			t.Fatalf("%.50q became %d bytes, valid %v", text, len(got), utf8.ValidString(got))
		}
		if len(text) <= MaxError && utf8.ValidString(text) && !strings.Contains(text, "\x00") && got != text {
			t.Fatalf("%.50q became %.50q", text, got)
		}
		if CutError(got) != got {
			t.Fatal("cutting twice is not cutting once")
		}
		if utf8.ValidString(text) && len(got) < min(len(text), MaxError-6) {
			t.Fatalf("%d bytes became %d", len(text), len(got))
		}
	})
}

func TestProblemsMatchTheirKindAndTheirCause(t *testing.T) {
	cause := errors.New("cause")
	p := fmt.Errorf("open: %w", &Error{Kind: ErrBusy, What: "busy", Why: []string{"a", "b"}, Err: cause})
	if !errors.Is(p, ErrBusy) || !errors.Is(p, cause) || errors.Is(p, ErrFull) || p.Error() != "open: busy: a; b" {
		t.Errorf(`got %+v; want Is(p, ErrBusy), Is(p, cause), not Is(p, ErrFull), Error() = "open: busy: a; b"`, p)
	}
	if q := error(&Error{Kind: ErrFull, What: "full"}); !errors.Is(q, ErrFull) || q.Error() != "full" {
		t.Errorf(`got %+v; want Is(q, ErrFull), Error() = "full"`, q)
	}
}
