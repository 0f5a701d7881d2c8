package runner

import (
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/testkit"
)

func TestWorkersHaveTheStateOfTheTimeOfTheCall(t *testing.T) {
	onFakeTime(t, Options{}, nil, func(f *fakeTimeTest) {
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
		testkit.NoError(f.T, w.SetState(f.Context(), db.WorkerOverloaded))
		want("overloaded")
		time.Sleep(time.Minute)
		want("overloaded")
		time.Sleep(time.Second)
		want("lost")
		testkit.NoError(f.T, w.SetState(f.Context(), db.WorkerDraining))
		want("lost")
		time.Sleep(time.Minute)
		want()
	})
}
