package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestOptionsOfWithOverrideThoseOfDefine(t *testing.T) {
	f := Define[int]("f", Queue("a"), MaxAttempts(2), Priority(1))
	s := f.With(1, Priority(2))
	if s.Queue != "a" || s.MaxAttempts != 2 || s.Priority != 2 || s.Job != "f" {
		t.Errorf(`got queue %q, %d attempts, priority %d, job %q; want queue "a", 2 attempts, priority 2, job "f"`,
			s.Queue, s.MaxAttempts, s.Priority, s.Job)
	}
	if f.Job() != "f" {
		t.Errorf(`got job %q, want "f"`, f.Job())
	}
	none := func(context.Context, int) error { return nil }
	if h := f.Handler(none); h.MaxAttempts != 2 || h.Job != "f" {
		t.Errorf(`handler: got %d attempts, job %q; want 2 attempts, job "f"`, h.MaxAttempts, h.Job)
	}
	if h := Define[int]("g").Handler(none); h.MaxAttempts != funcAttempts {
		t.Errorf("handler without options: got %d attempts, want %d", h.MaxAttempts, funcAttempts)
	}
	if s := Define[int]("f").With(1, MaxAttempts(9), AtMostOnce()); s.MaxAttempts != 1 || s.MaxLosses != 0 {
		t.Errorf("at most once: got %d attempts and %d losses, want 1 and 0", s.MaxAttempts, s.MaxLosses)
	}
}

func TestMetadataOfWithAddsToThatOfDefine(t *testing.T) {
	defaults := map[string]string{"team": "media", "tenant": "none"}
	f := Define[int]("f", Metadata(defaults))
	tenant := map[string]string{"tenant": "acme"}
	s := f.With(1, Metadata(tenant), Metadata(map[string]string{"trace": "1"}))
	tenant["tenant"], defaults["team"] = "changed later", "changed later"
	if want := map[string]string{"team": "media", "tenant": "acme", "trace": "1"}; !maps.Equal(s.Metadata, want) {
		t.Errorf("got metadata %v, want %v", s.Metadata, want)
	}
	if got := f.With(1).Metadata["tenant"]; got != "none" {
		t.Errorf("next task: got tenant %q, want %q: With changed the default", got, "none")
	}
	if s := Define[int]("f").With(1, Metadata(nil)); len(s.Metadata) != 0 {
		t.Errorf("got metadata %v, want none", s.Metadata)
	}
}

func TestResultOfTaskThatDidNotCompleteReturnsFailedError(t *testing.T) {
	f := DefineResult[int, int]("f")
	for _, s := range []State{Pending, Running, Completed, Failed, Cancelled} {
		_, err := f.Result(Task{ID: 7, State: s, Reason: "exit", Error: "exit status 2"}, nil)
		failed, ok := errors.AsType[*FailedError](err)
		if ok != (s != Completed) || ok && (failed.ID != 7 || failed.State != s || failed.Reason != ReasonExit ||
			failed.Msg != "exit status 2") {
			t.Errorf(`%s: got error %#v; want nil if completed, else a FailedError of task 7, reason "exit", text "exit status 2"`,
				s, err)
		}
	}
	if _, err := f.Result(Task{State: Completed}, ErrNotFound); !errors.Is(err, ErrNotFound) {
		t.Errorf("got error %v, want the error that was passed in, %v", err, ErrNotFound)
	}
	if n, err := f.Result(Task{State: Completed}, nil); n != 0 || err != nil {
		t.Errorf("a completed task without a result: got %d and error %v, want 0 and no error", n, err)
	}
	if _, err := f.Result(Task{ID: 3, State: Completed, Result: json.RawMessage(`"x"`)}, nil); err == nil ||
		!strings.Contains(err.Error(), "task 3") {
		t.Errorf(`a result of another type: got error %v, want one with "task 3"`, err)
	}
	for want, e := range map[string]*FailedError{
		"task 1 failed (exit): exit status 2": {1, Failed, ReasonExit, "exit status 2"},
		"task 2 cancelled":                    {2, Cancelled, ReasonCancelled, ""},
		"task 3 pending":                      {ID: 3, State: Pending},
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e.Error(), want)
		}
	}
}
