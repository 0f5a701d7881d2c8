package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// tag stores the tenant of the context in the metadata of new tasks, and puts
// the task into the queue of its tenant.
func tag(ctx context.Context, spec *jobs.Spec) error {
	tenant, ok := ctx.Value(tenantKey{}).(string)
	if !ok {
		return errNoTenant
	}
	spec.Metadata["tenant"], spec.Queue = tenant, tenant
	return nil
}

var errNoTenant = errors.New("no tenant")

func TestEnqueueMiddlewareRunsForEveryNewTask(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	r.UseEnqueue(tag, func(_ context.Context, spec *jobs.Spec) error {
		spec.Metadata["second"] = spec.Metadata["tenant"] + "!"
		return nil
	})
	ctx := context.WithValue(t.Context(), tenantKey{}, "acme")
	own := map[string]string{"own": "1"}
	spec := quick.With(nil, jobs.Metadata(own))
	spec.Metadata = own // use the map itself and no copy of it, so that the test sees whether middleware changes the map
	testkit.NoError(t, r.SetSchedule(ctx, jobs.Schedule{Name: "s", Cron: "@yearly", Spec: spec}))

	task, err := r.Enqueue(ctx, spec)
	testkit.NoError(t, err)
	testkit.Equal(t, "queue of the returned task", task.Queue, "acme")
	testkit.Equal(t, "tenant of the returned task", task.Metadata["tenant"], "acme")
	_, err = r.EnqueueMany(ctx, spec, spec)
	testkit.NoError(t, err)
	_, err = r.EnqueueSeq(ctx, slices.Values([]jobs.Spec{spec, spec}))
	testkit.NoError(t, err)
	_, err = admin.RunSchedule(ctx, r, "s")
	testkit.NoError(t, err)
	tx := begin(t, handle)
	_, err = r.EnqueueTx(ctx, tx, spec)
	testkit.NoError(t, err)
	_, err = r.EnqueueManyTx(ctx, tx, spec, spec)
	testkit.NoError(t, err)
	testkit.NoError(t, tx.Commit())

	if want := map[string]string{"own": "1"}; !maps.Equal(own, want) {
		t.Errorf("got %v in the map of the caller, want %v", own, want)
	}
	list, err := r.List(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks", len(list), 9)
	for _, task := range list {
		if want := (map[string]string{"own": "1", "tenant": "acme", "second": "acme!"}); !maps.Equal(task.Metadata, want) ||
			task.Queue != "acme" {
			t.Errorf("task %d: got metadata %v, queue %q; want %v, acme", task.ID, task.Metadata, task.Queue, want)
		}
	}
}

func TestEnqueueMiddlewareRefusesTasks(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "s", Cron: "@yearly", Spec: quick.With(nil)}))
	r.UseEnqueue(tag)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Enqueue":     func() error { _, err := r.Enqueue(ctx, quick.With(nil)); return err },
		"EnqueueMany": func() error { _, err := r.EnqueueMany(ctx, quick.With(nil)); return err },
		"EnqueueSeq":  func() error { _, err := r.EnqueueSeq(ctx, slices.Values([]jobs.Spec{quick.With(nil)})); return err },
		"EnqueueTx": func() error {
			tx := begin(t, handle)
			defer tx.Rollback()
			_, err := r.EnqueueTx(ctx, tx, quick.With(nil))
			return err
		},
		"EnqueueManyTx": func() error {
			tx := begin(t, handle)
			defer tx.Rollback()
			_, err := r.EnqueueManyTx(ctx, tx, quick.With(nil))
			return err
		},
		"RunSchedule": func() error { _, err := admin.RunSchedule(ctx, r, "s"); return err },
	} {
		if err := call(); !errors.Is(err, errNoTenant) {
			t.Errorf("%s: got error %v, want %v", name, err, errNoTenant)
		}
	}
	// Enqueue checks the Spec that the middleware returns.
	_, err := r.Enqueue(context.WithValue(ctx, tenantKey{}, "no queue"), quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	if field, ok := errors.AsType[*jobs.FieldError](err); !ok || field.Field != "queue" {
		t.Errorf("got error %v, want one of the field queue", err)
	}
	n, _, err := r.Count(ctx, jobs.Filter{})
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks", n, 0)
}

// TestMiddlewareEncryptsAndDecryptsArguments reverses the arguments instead of
// encrypting them.
func TestMiddlewareEncryptsAndDecryptsArguments(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	reversed := func(args json.RawMessage) []byte {
		text := slices.Clone([]byte(args))
		slices.Reverse(text)
		return text
	}
	r.UseEnqueue(func(_ context.Context, spec *jobs.Spec) (err error) {
		spec.Args, err = json.Marshal(string(reversed(spec.Args)))
		return err
	})
	r.Use(func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (
		json.RawMessage, error) {
		var sealed string
		if err := json.Unmarshal(task.Args, &sealed); err != nil {
			return nil, err
		}
		task.Args = reversed(json.RawMessage(sealed))
		return next(ctx, task)
	})
	r.Register(double.Handler(func(_ context.Context, n int) (int, error) { return 2 * n, nil }))
	task := runnerkit.Enqueue(t, r, double.With(123))
	testkit.Equal(t, "stored arguments", string(runnerkit.Get(t, r, task.ID).Args), `"321"`)
	runnerkit.Drain(t, r)
	got, err := double.Result(r.Await(t.Context(), task.ID))
	testkit.NoError(t, err)
	testkit.Equal(t, "result", got, 246)
	if again := runnerkit.Get(t, r, task.ID); !strings.Contains(string(again.Args), "321") {
		t.Errorf("after the attempt: got arguments %s, want the encrypted ones", again.Args)
	}
}
