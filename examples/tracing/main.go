// Command tracing shows how OpenTelemetry follows tasks. A request adds a task,
// an attempt snoozes it, another attempt fails, and the last attempt adds a
// second task. The program prints each span as JSON. All spans have the same
// TraceID.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

var (
	resize = jobs.Define[string]("image.resize", jobs.MaxAttempts(5),
		jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Second}))
	mail = jobs.Define[string]("mail.send")
)

// register registers the functions of both jobs. The first call of image.resize
// asks for a snooze, the second call fails, and the third call adds a mail.
func register(r *runner.Runner) {
	calls := 0
	r.Register(
		resize.Handler(func(ctx context.Context, name string) error {
			switch calls++; calls {
			case 1:
				return jobs.Snooze(time.Second) // the image hasn't arrived yet
			case 2:
				return errors.New("out of memory")
			}

			_, err := r.Enqueue(ctx, mail.With(name+" is ready")) // ctx contains the span, so the new task belongs to the same trace
			return err
		}),
		mail.Handler(func(context.Context, string) error { return nil }),
	)
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	exporter, err := stdouttrace.New(stdouttrace.WithPrettyPrint())
	if err != nil {
		return err
	}

	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	defer func() { err = errors.Join(err, provider.Shutdown(ctx)) }()

	dir, err := os.MkdirTemp("", "tracing")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	r, err := runner.Open(ctx, filepath.Join(dir, "app.db"), runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()

	Trace(r, provider)
	register(r)

	if err := upload(ctx, r, provider.Tracer("app"), "sea.png"); err != nil {
		return err
	}

	for {
		if err := r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
			return err
		}
		left, _, err := r.Count(ctx, jobs.Filter{States: []jobs.State{jobs.Scheduled, jobs.Pending, jobs.Blocked, jobs.Running,
			jobs.Retrying}})
		if err != nil || left == 0 {
			return err
		}
		time.Sleep(100 * time.Millisecond) // wait until the snooze or the backoff is over
	}
}

// upload stands for a request of a web application. It has a span of its own.
func upload(ctx context.Context, r *runner.Runner, tracer trace.Tracer, name string) error {
	ctx, span := tracer.Start(ctx, "POST /images")
	defer span.End()
	if _, err := r.Enqueue(ctx, resize.With(name)); err != nil {
		return fmt.Errorf("upload %s: %w", name, err)
	}
	return nil
}
