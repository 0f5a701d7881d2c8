package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Trace makes a span for each task that r adds, and a span for each attempt
// that r runs. The span of an attempt is a child of the span that added its
// task, even if another process runs the attempt. So the trace of a request
// contains all attempts of the tasks that the request added. Call Trace before
// Work.
func Trace(r *runner.Runner, provider trace.TracerProvider) {
	t := tracing{provider.Tracer("example.com/runner/examples/tracing")}
	r.UseEnqueue(t.enqueue)
	r.Use(t.attempt)
}

type tracing struct{ tracer trace.Tracer }

// carried writes a trace context to the metadata of a task and reads it from
// there. It uses the keys traceparent and tracestate of the W3C standard.
var carried propagation.TraceContext

// snoozed matches the error of jobs.Snooze. A task that snoozes hasn't failed.
type snoozed interface {
	error
	SnoozeFor() time.Duration
}

// enqueue stores the trace context of a new task in its metadata.
func (t tracing) enqueue(ctx context.Context, spec *jobs.Spec) error {
	ctx, span := t.tracer.Start(ctx, "enqueue "+spec.Job, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("messaging.system", "runner"),
		attribute.String("messaging.destination.name", spec.Queue),
	))
	defer span.End()
	carried.Inject(ctx, propagation.MapCarrier(spec.Metadata))
	return nil
}

// attempt runs one attempt of a task in a span.
func (t tracing) attempt(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (
	json.RawMessage, error) {
	ctx = carried.Extract(ctx, propagation.MapCarrier(task.Metadata))
	ctx, span := t.tracer.Start(ctx, "run "+task.Job, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.String("messaging.system", "runner"),
		attribute.String("messaging.destination.name", task.Queue),
		attribute.Int64("runner.task", task.ID),
		attribute.Int("runner.attempt", task.Attempt),
	))
	defer span.End() // runs even if the function panics

	result, err := next(ctx, task)
	if snooze, ok := errors.AsType[snoozed](err); ok {
		span.AddEvent("snooze", trace.WithAttributes(attribute.String("for", snooze.SnoozeFor().String())))
	} else if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}

	return result, err
}
