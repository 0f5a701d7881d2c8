package runner

import (
	"reflect"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestWorkersHaveStateOfTimeOfCall(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		w, err := f.store.Register(f.Context(), db.WorkerInfo{Name: "web1", Slots: 1, Lease: time.Minute, StartedAt: now()}, nil)
		testkit.NoError(f.T, err)
		want := func(states ...string) {
			f.Helper()
			workers, err := f.Workers(f.Context())
			testkit.NoError(f.T, err)
			var got []string
			for _, worker := range workers {
				got = append(got, worker.State)
			}
			testkit.Equal(f.T, "states of the workers", got, states)
		}
		want("ready")
		testkit.NoError(f.T, w.Drain(f.Context()))
		want("draining")
		time.Sleep(time.Minute)
		want("draining")
		time.Sleep(time.Second)
		want("lost")
		time.Sleep(time.Minute)
		want()
	})
}

// TestWorkersHaveEveryField registers a worker with a value in each field.
func TestWorkersHaveEveryField(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		w, err := f.store.Register(f.Context(), db.WorkerInfo{Name: "w", Host: "h", BootID: "b", PID: 7, Namespace: "n", User: "ann",
			UID: 1000, Version: "v", Slots: 1, Queues: []jobs.QueueMax{{Name: "q"}}, Lease: time.Minute,
			StartedAt: now(), Jobs: []string{"work"}},
			[]db.ClaimJob{{Job: "work"}})
		testkit.NoError(f.T, err)
		f.enqueue(work.With("x", jobs.Queue("q")))
		_, err = w.Cycle(f.Context(), db.Cycle{Now: now(), Look: true, Claim: db.Claim{Free: 1, Lease: time.Minute}})
		testkit.NoError(f.T, err)
		_, err = w.Beat(f.Context(), nil, time.Minute, now())
		testkit.NoError(f.T, err)
		workers, err := f.Workers(f.Context())
		testkit.NoError(f.T, err)
		got := reflect.ValueOf(workers[0])
		for i := range got.NumField() {
			if name := got.Type().Field(i).Name; got.Field(i).IsZero() && name != "Dead" {
				f.Errorf("got no value in %s, want one", name)
			}
		}
	})
}
