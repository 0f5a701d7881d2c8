package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// machine sets the load and the free memory (in KiB) of a simulated machine. It replaces the files of the machine instead of writing to
// them, because a worker that reads a file meanwhile must not find it empty.
func machine(t *testing.T, load float64, free int) {
	t.Helper()
	for name, text := range map[string]string{
		"loadavg": fmt.Sprintf("%.2f 0.50 0.25 1/1027 12345\n", load),
		"meminfo": fmt.Sprintf("MemTotal:       16384000 kB\nMemFree:          204800 kB\nMemAvailable:   %8d kB\nBuffers: 1 kB\n", free),
	} {
		path := filepath.Join(procfs, name)
		testkit.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		testkit.NoError(t, os.Rename(path+".new", path))
	}
}

func simulateMachine(t *testing.T) {
	real := procfs
	procfs = t.TempDir()
	t.Cleanup(func() { procfs = real })
}

// TestNoTaskStartsUnderPressure simulates a machine whose load and memory exceed the limits of the worker for some time.
func TestNoTaskStartsUnderPressure(t *testing.T) {
	simulateMachine(t)
	onFakeTime(t, func(t *testing.T, o Options, runs *atomic.Int64) {
		o.UntilEmpty, o.MaxLoad, o.MinFreeMemory, o.LivenessEvery = true, 8, 1<<30, time.Hour
		var ready atomic.Bool
		o.Liveness = func(jobs.Liveness) { ready.Store(true) }
		spec := jobs.NewSpec("work")
		if _, err := o.Store.Insert(t.Context(), []jobs.Spec{spec}, now()); err != nil {
			t.Fatal(err)
		}
		machine(t, 8.01, 2<<20)
		e := newEngine(t, o)
		over := make(chan error, 1)
		go func() { over <- e.Run(t.Context(), make(chan struct{})) }()
		for _, step := range []struct {
			load  float64
			free  int
			state string
		}{{8.01, 2 << 20, db.WorkerOverloaded}, {9, 1000, db.WorkerOverloaded}, {8, 1<<20 - 1, db.WorkerLowMemory}} {
			machine(t, step.load, step.free)
			time.Sleep(20 * time.Second)
			workers, err := o.Store.Workers(t.Context(), time.Time{})
			if err != nil || len(workers) != 1 || workers[0].State != step.state || runs.Load() != 0 {
				t.Fatalf("load %v, %d KiB free: got %d runs, workers %+v, error %v; want no run and one worker in the state %s", step.load,
					step.free, runs.Load(), workers, err, step.state)
			}
		}
		testkit.Equal(t, "whether the worker has reported that it is ready", ready.Load(), true)
		machine(t, 8, 1<<20)
		began := now()
		if err := <-over; err != nil {
			t.Errorf("got error %v, want none", err)
		}
		testkit.Equal(t, "runs", runs.Load(), 1)
		testkit.Between(t, "time until the task has run", now().Sub(began), 0, 2*time.Second)
	})
}

func TestPressureThatCannotBeMeasuredIsAnError(t *testing.T) {
	simulateMachine(t)
	for field, o := range map[string]Options{"max_load": {MaxLoad: 1}, "min_free_memory": {MinFreeMemory: 1}} {
		_, _, err := o.measure()
		if got, ok := errors.AsType[*jobs.FieldError](err); !ok || got.Field != field {
			t.Errorf("got error %v, want an error of the field %s", err, field)
		}
	}
}
