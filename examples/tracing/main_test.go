package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
)

// traced runs a test with a fake clock. The test reads the ended spans from the
// exporter.
func traced(t *testing.T, test func(t *testing.T, r *runner.Runner, spans *tracetest.InMemoryExporter, provider trace.TracerProvider)) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		spans := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		Trace(r, provider)
		register(r)
		test(t, r, spans, provider)
	})
}

// tree returns a line for each span, in the order in which the spans began: the
// name of the span and the names of its parents.
func tree(spans tracetest.SpanStubs) (paths []string) {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	byID := map[trace.SpanID]tracetest.SpanStub{}
	for _, s := range spans {
		byID[s.SpanContext.SpanID()] = s
	}
	for _, s := range spans {
		path := s.Name
		for parent := s.Parent; parent.HasSpanID(); parent = byID[parent.SpanID()].Parent {
			path = byID[parent.SpanID()].Name + " > " + path
		}
		paths = append(paths, path)
	}
	return paths
}

func named(spans tracetest.SpanStubs, name string) (found []tracetest.SpanStub) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func TestOneTraceCrossesEnqueueRunSnoozeAndRetry(t *testing.T) {
	traced(t, func(t *testing.T, r *runner.Runner, exporter *tracetest.InMemoryExporter, provider trace.TracerProvider) {
		if err := upload(t.Context(), r, provider.Tracer("app"), "sea.png"); err != nil {
			t.Fatal(err)
		}
		for range 3 { // these are the snoozed attempt, the failed attempt and the last attempt
			runnertest.Advance(t, 2*time.Second)
			runnertest.RunDue(t, r)
		}
		spans := exporter.GetSpans()
		const resized = "POST /images > enqueue image.resize > run image.resize"
		want := []string{"POST /images", "POST /images > enqueue image.resize", resized, resized, resized,
			resized + " > enqueue mail.send", resized + " > enqueue mail.send > run mail.send"}
		if got := tree(spans); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("got spans\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, s := range spans {
			if got, want := s.SpanContext.TraceID(), spans[0].SpanContext.TraceID(); got != want {
				t.Errorf("%s: got trace %s, want %s", s.Name, got, want)
			}
		}

		runs := named(spans, "run image.resize")
		if len(runs) != 3 {
			t.Fatalf("got %d attempts, want 3", len(runs))
		}
		for i, want := range []codes.Code{codes.Unset, codes.Error, codes.Unset} {
			if got := runs[i].Status.Code; got != want {
				t.Errorf("attempt %d: got status %v, want %v", i, got, want)
			}
			if !runs[i].Parent.IsRemote() || runs[i].SpanKind != trace.SpanKindConsumer {
				t.Errorf("attempt %d: got remote parent %v, kind %v; want true, consumer", i, runs[i].Parent.IsRemote(), runs[i].SpanKind)
			}
			if want := attribute.Int64("runner.task", 1); !slices.Contains(runs[i].Attributes, want) {
				t.Errorf("attempt %d: got attributes %v, want %v among them", i, runs[i].Attributes, want)
			}
		}
		if len(runs[0].Events) != 1 || runs[0].Events[0].Name != "snooze" {
			t.Errorf("first attempt: got events %v, want snooze", runs[0].Events)
		}
		if runs[1].Status.Description != "out of memory" {
			t.Errorf("second attempt: got status %q, want out of memory", runs[1].Status.Description)
		}
		if wait := runs[1].StartTime.Sub(runs[0].StartTime); wait < time.Second {
			t.Errorf("got %v between the attempts, want the snooze of 1s or more", wait)
		}
		task, err := r.Get(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		parent := named(spans, "enqueue image.resize")[0].SpanContext
		if got, want := task.Metadata["traceparent"], "00-"+parent.TraceID().String()+"-"+parent.SpanID().String()+"-01"; got != want {
			t.Errorf("got traceparent %q, want %q", got, want)
		}
	})
}

func TestScheduleBeginsTraceAtEachTick(t *testing.T) {
	traced(t, func(t *testing.T, r *runner.Runner, exporter *tracetest.InMemoryExporter, _ trace.TracerProvider) {
		if err := r.SetSchedule(t.Context(), jobs.Schedule{Name: "digest", Cron: "@every 1h", Spec: mail.With("digest")}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			runnertest.Advance(t, time.Hour)
			runnertest.RunDue(t, r)
		}
		spans := exporter.GetSpans()
		want := []string{"enqueue mail.send", "enqueue mail.send > run mail.send", "enqueue mail.send", "enqueue mail.send > run mail.send"}
		if got := tree(spans); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("got spans %q, want %q", got, want)
		}
		runs := named(spans, "run mail.send")
		if len(runs) == 2 && runs[0].SpanContext.TraceID() == runs[1].SpanContext.TraceID() {
			t.Errorf("got trace %s for both ticks, want a trace of its own for each", runs[0].SpanContext.TraceID())
		}
	})
}
