package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
)

// onFakeTime runs a test with a fake clock. A function replaces the mail
// server, because the fake clock stops while a goroutine waits for the network.
func onFakeTime(t *testing.T, test func(t *testing.T, a *app)) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		a, err := newApp(t.Context(), r, runnertest.OpenDB(t, r), "mail.example:25", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		test(t, a)
	})
}

// TestOutageOfMailServerDelaysMail checks that the mail is sent once after an
// outage of two hours, and not before.
func TestOutageOfMailServerDelaysMail(t *testing.T) {
	onFakeTime(t, func(t *testing.T, a *app) {
		ends := time.Now().Add(2 * time.Hour)
		calls, sent := 0, 0
		a.send = func(context.Context, string, []byte) error {
			if calls++; time.Now().Before(ends) {
				return errors.New("connection refused")
			}
			sent++
			return nil
		}
		id, err := a.signUp(t.Context(), "ann@example.com")
		if err != nil {
			t.Fatal(err)
		}
		if ran := runnertest.RunDue(t, a.runner); len(ran) != 1 || ran[0].State != jobs.Retrying {
			t.Errorf("got tasks %+v, want one that is retrying", ran)
		}
		for range 20 {
			runnertest.Advance(t, 15*time.Minute)
			runnertest.RunDue(t, a.runner)
		}
		task, err := a.runner.Get(t.Context(), id)
		if err != nil || task.State != jobs.Completed || task.Attempt != calls {
			t.Errorf("got state %s, %d attempts, %d calls and error %v, want completed and as many attempts as calls", task.State,
				task.Attempt, calls, err)
		}
		if sent != 1 || calls < 3 {
			t.Errorf("got %d mails after %d calls, want 1 after several calls", sent, calls)
		}
	})
}

// TestCrashAfterMailSendsSameMessageID kills the program after the mail server
// has accepted the mail and before the task is completed. The next attempt must
// use the same Message-ID.
func TestCrashAfterMailSendsSameMessageID(t *testing.T) {
	onFakeTime(t, func(t *testing.T, a *app) {
		ids := map[string]int{}
		if _, err := a.signUp(t.Context(), "ann@example.com"); err != nil {
			t.Fatal(err)
		}
		a.send = func(ctx context.Context, _ string, text []byte) error {
			_, after, _ := strings.Cut(string(text), "Message-ID: ")
			id, _, _ := strings.Cut(after, "\r\n")
			if ids[id]++; len(ids) == 1 && ids[id] == 1 {
				runnertest.Crash(ctx, a.runner)
			}
			return nil
		}
		ran := runnertest.RunDue(t, a.runner)
		if len(ran) != 2 || ran[1].State != jobs.Completed || ran[1].Losses != 1 {
			t.Errorf("got tasks %+v, want two attempts of a task that completed after a loss", ran)
		}
		if ids["<welcome-1@example.com>"] != 2 || len(ids) != 1 {
			t.Errorf("got mails %v, want <welcome-1@example.com> twice", ids)
		}
	})
}

// TestSignUpWithUnknownEndAddsOneTask repeats a sign-up. The first one got an
// error although its commit succeeded, so the second one must add nothing.
func TestSignUpWithUnknownEndAddsOneTask(t *testing.T) {
	onFakeTime(t, func(t *testing.T, a *app) {
		runnertest.FailAfterCommit(t, a.runner)
		if _, err := a.signUp(t.Context(), "ann@example.com"); !errors.Is(err, runnertest.ErrInjected) {
			t.Errorf("got error %v, want %v", err, runnertest.ErrInjected)
		}
		if _, err := a.signUp(t.Context(), "ann@example.com"); !errors.Is(err, errTaken) {
			t.Errorf("second call: got error %v, want %v", err, errTaken)
		}
		if got := runnertest.Enqueued(t, a.runner, welcome); len(got) != 1 || got[0].To != "ann@example.com" {
			t.Errorf("got tasks %v, want one for ann@example.com", got)
		}
	})
}
