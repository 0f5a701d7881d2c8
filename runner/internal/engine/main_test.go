package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// The tests of this package check parts of an Engine. Most tests of whole
// workers are in package runner.

func onFakeTime(t *testing.T, test func(t *testing.T, o Options, runs *atomic.Int64)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), db.Options{Create: true, Alone: true})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		var runs atomic.Int64
		run := func(context.Context, jobs.Task) (json.RawMessage, error) {
			runs.Add(1)
			return nil, nil
		}
		test(t, Options{Store: store, Log: slog.New(slog.DiscardHandler), WorkOptions: WorkOptions{Concurrency: 1, Lease: time.Minute},
			PrepareTick: func(context.Context, *jobs.Spec) error { return nil },
			Handlers:    map[string]jobs.Handler{"work": {Job: "work", MaxAttempts: 3, Run: run}}}, &runs)
	})
}

func newEngine(t *testing.T, o Options) *Engine {
	t.Helper()
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.unlock(true) })
	return e
}
