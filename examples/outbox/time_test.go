package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
)

// fakeServer answers requests without a network, because the fake clock stops
// while a goroutine waits for the network. It stores a reading only once, even
// if it receives the same key twice.
type fakeServer struct {
	calls  []time.Time
	stored []string
	before func(ctx context.Context) error // called before a reading is stored; if it returns an error, the request fails with that error
	after  func(ctx context.Context)       // called when a reading is stored
}

func (s *fakeServer) RoundTrip(request *http.Request) (*http.Response, error) {
	s.calls = append(s.calls, time.Now())
	if s.before != nil {
		if err := s.before(request.Context()); err != nil {
			return nil, err
		}
	}
	if key := request.Header.Get("Idempotency-Key"); !slices.Contains(s.stored, key) {
		s.stored = append(s.stored, key)
	}
	if s.after != nil {
		s.after(request.Context())
	}
	return httptest.NewRecorder().Result(), nil
}

// onFakeTime runs a test with a fake clock. The backoff is a minute.
func onFakeTime(t *testing.T, test func(t *testing.T, o *outbox, s *fakeServer)) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		o, err := newOutbox(t.Context(), r, runnertest.OpenDB(t, r), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		s := &fakeServer{}
		o.client = &http.Client{Transport: s}
		o.deliverTo("http://server.example/")
		test(t, o, s)
	})
}

func (o *outbox) mustRecord(t *testing.T, device string) {
	t.Helper()
	if _, err := o.record(t.Context(), device, 20.5); err != nil {
		t.Fatal(err)
	}
}

func wantStored(t *testing.T, s *fakeServer, want ...string) {
	t.Helper()
	if !slices.Equal(s.stored, want) {
		t.Errorf("got readings %v at the server, want %v", s.stored, want)
	}
}

// TestOutageDelaysAllReadings checks that the readings of a device arrive in
// order after an outage of the server. The delay after each failed attempt
// doubles, and the later readings wait for the first one.
func TestOutageDelaysAllReadings(t *testing.T) {
	onFakeTime(t, func(t *testing.T, o *outbox, s *fakeServer) {
		began := time.Now()
		s.before = func(context.Context) error {
			if time.Since(began) < 10*time.Minute {
				return errors.New("connection refused")
			}
			return nil
		}
		for range 3 {
			o.mustRecord(t, "boiler")
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.runner.Work(ctx, runner.WorkOptions{}) }()
		runnertest.Advance(t, 10*time.Minute)
		wantStored(t, s)
		runnertest.Advance(t, 10*time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		wantStored(t, s, "boiler/1", "boiler/2", "boiler/3")
		// Five calls are for the first reading, at 0, 1, 3, 7 and 15 minutes.
		// There is one call for each later reading.
		if got, want := len(s.calls), 7; got != want {
			t.Errorf("got %d calls at %v, want %d", got, s.calls, want)
		}
	})
}

// TestFailedAttemptIsTriedAgainAfterBackoff checks that there is no attempt
// before the backoff has passed.
func TestFailedAttemptIsTriedAgainAfterBackoff(t *testing.T) {
	onFakeTime(t, func(t *testing.T, o *outbox, s *fakeServer) {
		s.before = func(context.Context) error {
			if len(s.calls) == 1 {
				return errors.New("connection reset")
			}
			return nil
		}
		o.mustRecord(t, "boiler")
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "[retrying]"}, {50 * time.Second, "[]"}, {20 * time.Second, "[completed]"}} {
			runnertest.Advance(t, step.after)
			states := []jobs.State{}
			for _, task := range runnertest.RunDue(t, o.runner) {
				states = append(states, task.State)
			}
			if got := fmt.Sprint(states); got != step.want {
				t.Errorf("%v later: got tasks %s, want %s", step.after, got, step.want)
			}
		}
		wantStored(t, s, "boiler/1")
	})
}

// TestCrashAfterRequestSendsSameKey kills the sender after the server has
// stored the reading and before the sender has completed the task. The sender
// must then send the same key again.
func TestCrashAfterRequestSendsSameKey(t *testing.T) {
	onFakeTime(t, func(t *testing.T, o *outbox, s *fakeServer) {
		s.after = func(ctx context.Context) {
			if len(s.calls) == 1 {
				runnertest.Crash(ctx, o.runner)
			}
		}
		o.mustRecord(t, "boiler")
		ran := runnertest.RunDue(t, o.runner)
		if len(ran) != 2 || ran[1].State != jobs.Completed || ran[1].Losses != 1 {
			t.Errorf("got tasks %+v, want two attempts of a task that completed after a loss", ran)
		}
		if len(s.calls) != 2 {
			t.Errorf("got %d calls, want 2", len(s.calls))
		}
		wantStored(t, s, "boiler/1")
	})
}

// TestCommitWithUnknownEndKeepsNumberAndTask checks a commit that returns an
// error. Afterwards the database must contain either both the number and the
// task of the reading, or neither.
func TestCommitWithUnknownEndKeepsNumberAndTask(t *testing.T) {
	for want, fail := range map[string]func(testing.TB, *runner.Runner){
		"[boiler/1]":          runnertest.FailBeforeCommit,
		"[boiler/1 boiler/2]": runnertest.FailAfterCommit,
	} {
		onFakeTime(t, func(t *testing.T, o *outbox, s *fakeServer) {
			fail(t, o.runner)
			if _, err := o.record(t.Context(), "boiler", 20.5); !errors.Is(err, runnertest.ErrInjected) {
				t.Errorf("got error %v, want %v", err, runnertest.ErrInjected)
			}
			o.mustRecord(t, "boiler")
			runnertest.RunDue(t, o.runner)
			if got := fmt.Sprint(s.stored); got != want {
				t.Errorf("got readings %s at the server, want %s", got, want)
			}
		})
	}
}
