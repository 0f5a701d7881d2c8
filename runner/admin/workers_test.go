package admin_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
)

func TestWorkersHaveStateOfTimeOfCall(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		w, err := db.Of(r).Register(t.Context(), db.WorkerInfo{Name: "web1", Slots: 1, Lease: time.Minute, StartedAt: time.Now()}, nil)
		testkit.NoError(t, err)
		want := func(states ...admin.WorkerState) {
			t.Helper()
			workers, err := admin.Workers(t.Context(), r)
			testkit.NoError(t, err)
			var got []admin.WorkerState
			for _, worker := range workers {
				got = append(got, worker.State)
			}
			testkit.Equal(t, "states of the workers", got, states)
		}
		want(admin.WorkerReady)
		testkit.NoError(t, w.Drain(t.Context()))
		want(admin.WorkerDraining)
		time.Sleep(time.Minute)
		want(admin.WorkerDraining)
		time.Sleep(time.Second)
		want(admin.WorkerLost)
		time.Sleep(time.Minute)
		want()
	})
}

// TestWorkersHaveEveryField registers a worker with a value in each field.
func TestWorkersHaveEveryField(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		w, err := db.Of(r).Register(t.Context(), db.WorkerInfo{Name: "w", Host: "h", BootID: "b", PID: 7, Namespace: "n", User: "ann",
			UID: 1000, Version: "v", Slots: 1, Queues: []jobs.QueueMax{{Name: "q"}}, Lease: time.Minute,
			StartedAt: time.Now(), Jobs: []string{"work"}},
			[]db.ClaimJob{{Job: "work"}})
		testkit.NoError(t, err)
		_, err = r.Enqueue(t.Context(), jobs.NewSpec("work", jobs.Queue("q")))
		testkit.NoError(t, err)
		_, err = w.Cycle(t.Context(), db.Cycle{Now: time.Now(), Look: true, Claim: db.Claim{Free: 1, Lease: time.Minute}})
		testkit.NoError(t, err)
		_, err = w.Beat(t.Context(), nil, time.Minute, time.Now())
		testkit.NoError(t, err)
		workers, err := admin.Workers(t.Context(), r)
		testkit.NoError(t, err)
		got := reflect.ValueOf(workers[0])
		for i := range got.NumField() {
			if name := got.Type().Field(i).Name; got.Field(i).IsZero() && name != "Dead" {
				t.Errorf("got no value in %s, want one", name)
			}
		}
	})
}

func TestHandlerThatIgnoresItsTimeoutIsStuck(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		hang := jobs.Define[string]("hang")
		r.Register(hang.Handler(func(context.Context, string) error { time.Sleep(5 * time.Minute); return nil }))
		task, err := r.Enqueue(t.Context(), hang.With("", jobs.Timeout(time.Minute), jobs.MaxAttempts(1)))
		testkit.NoError(t, err)

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Work(ctx, runner.WorkOptions{Concurrency: 1}) }()
		want := func(reason admin.WaitReason) {
			t.Helper()
			task, err := r.Get(t.Context(), task.ID)
			testkit.NoError(t, err)
			wait, err := admin.Why(t.Context(), r, task)
			testkit.NoError(t, err)
			testkit.Equal(t, "reason", wait.Reason, reason)
		}
		time.Sleep(time.Minute + 9*time.Second)
		want(admin.WaitRunning)
		time.Sleep(2 * time.Second)
		want(admin.WaitStuck)
		time.Sleep(5 * time.Minute)
		stop()
		testkit.NoError(t, <-ended)

		// the handler has kept its slot, so the worker accepts its late result
		done, err := r.Get(t.Context(), task.ID)
		testkit.NoError(t, err)
		testkit.Equal(t, "state", done.State, jobs.Completed)
	})
}
