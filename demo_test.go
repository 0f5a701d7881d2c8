package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

type (
	demoSum    struct{ A, B int }
	demoLetter struct{ To string }
)

// These jobs belong to the program runnerdemo of the test scripts.
var (
	demoAdd     = jobs.DefineResult[demoSum, int]("demo.add")
	demoEcho    = jobs.DefineResult[json.RawMessage, json.RawMessage]("demo.echo")
	demoFail    = jobs.Define[string]("demo.fail", jobs.MaxAttempts(2))
	demoPanic   = jobs.Define[string]("demo.panic", jobs.MaxAttempts(1))
	demoSleep   = jobs.Define[string]("demo.sleep")
	demoSnooze  = jobs.Define[string]("demo.snooze")
	demoCancel  = jobs.Define[string]("demo.cancel")
	demoRetryIn = jobs.Define[string]("demo.retryin")
	demoEmail   = jobs.DefineResult[demoLetter, string]("email.send")
)

// demo is the program "runnerdemo [forever]", which the test scripts start. It
// runs the tasks of its jobs, such as demo.add, from the database at
// $RUNNER_DB. It ends when no task is due, or, with "forever", at a signal.
func demo() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runDemo(ctx, len(os.Args) > 1 && os.Args[1] == "forever"); err != nil {
		fmt.Fprintln(os.Stderr, "runnerdemo:", err)
		os.Exit(1)
	}
}

func runDemo(ctx context.Context, forever bool) error {
	r, err := runner.Open(ctx, os.Getenv("RUNNER_DB"), runner.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	defer r.Close()
	r.Register(
		demoAdd.Handler(func(_ context.Context, in demoSum) (int, error) { return in.A + in.B, nil }),
		demoEcho.Handler(func(_ context.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }),
		demoEmail.Handler(func(_ context.Context, in demoLetter) (string, error) { return "sent to " + in.To, nil }),
		demoFail.Handler(func(_ context.Context, text string) error { return jobs.RetryIn(0, errors.New(text)) }),
		demoPanic.Handler(func(_ context.Context, text string) error { panic(text) }),
		demoSleep.Handler(sleepUntilStopped),
		demoSnooze.Handler(func(ctx context.Context, marker string) error { return once(marker, jobs.Snooze(0)) }),
		demoCancel.Handler(func(_ context.Context, text string) error { return jobs.Cancel(errors.New(text)) }),
		demoRetryIn.Handler(func(_ context.Context, marker string) error {
			return once(marker, jobs.RetryIn(time.Hour, errors.New("not yet")))
		}),
	)
	if forever {
		return r.Work(ctx, runner.WorkOptions{Concurrency: 1})
	}
	return r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true})
}

// sleepUntilStopped writes "begun" to a file and waits until its context ends.
// Then it replaces the content of the file with the reason why the context
// ended.
func sleepUntilStopped(ctx context.Context, file string) error {
	if err := os.WriteFile(file, []byte("begun\n"), 0o600); err != nil {
		return err
	}
	<-ctx.Done()
	if err := os.WriteFile(file, []byte(context.Cause(ctx).Error()+"\n"), 0o600); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// once returns err when it is called with a marker for the first time, and nil
// later. The marker is the path of a file, which the first call creates.
func once(marker string, err error) error {
	if _, stat := os.Stat(marker); stat == nil {
		return nil
	}
	if write := os.WriteFile(marker, nil, 0o600); write != nil {
		return write
	}
	return err
}
