package taskspec

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

type counted struct{ Count int64 }

func TestInvalidArgsFailAttempt(t *testing.T) {
	called := false
	h := jobs.Define[counted]("email.send").Handler(func(context.Context, counted) error { called = true; return nil })
	for _, args := range []string{`[]`, `"x"`, `{"Count":"one"}`, `{"Count":1e99}`} {
		result, err := h.Run(t.Context(), jobs.Task{Args: json.RawMessage(args)})
		if o := OutcomeOf(result, err); o.Reason != jobs.ReasonArgs || !strings.Contains(o.Error, "email.send") || called {
			t.Errorf(`%s: got reason %q, error %q, function called: %v; want reason %q, an error with "email.send", no call`,
				args, o.Reason, o.Error, called, jobs.ReasonArgs)
		}
	}
	if _, err := h.Run(t.Context(), jobs.Task{}); err != nil || !called {
		t.Errorf("a task without args: got error %v, function called: %v; want no error and a call", err, called)
	}
}

func TestInvalidResultFailsAttemptAndIsNotKept(t *testing.T) {
	huge := jobs.DefineResult[int, string]("huge").Handler(func(context.Context, int) (string, error) {
		return strings.Repeat("x", usercode.MaxResult), nil
	})
	deep := jobs.DefineResult[int, json.RawMessage]("deep").Handler(func(context.Context, int) (json.RawMessage, error) {
		return json.RawMessage(strings.Repeat("[", usercode.MaxDepth+1) + strings.Repeat("]", usercode.MaxDepth+1)), nil
	})
	never := jobs.DefineResult[int, func()]("never").Handler(func(context.Context, int) (func(), error) { return func() {}, nil })
	for _, h := range []jobs.Handler{huge, deep, never} {
		result, err := h.Run(t.Context(), jobs.Task{})
		if err == nil || result != nil {
			t.Errorf("%s: got result %.20q and error %v, want no result and an error", h.Job, result, err)
		}
		if o := OutcomeOf(result, err); o.Reason != jobs.ReasonError || !strings.HasPrefix(o.Error, "result: ") || o.Result != nil {
			t.Errorf(`%s: got reason %q, error %.200q, a result of %d bytes; want reason %q, an error "result: …", no result`,
				h.Job, o.Reason, o.Error, len(o.Result), jobs.ReasonError)
		}
	}
}
