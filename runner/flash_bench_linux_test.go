package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// writtenBytes returns how many bytes this process has written to the disk,
// according to Linux. Linux counts a page only once if a process changes it
// several times between two syncs.
func writtenBytes(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nwrite_bytes: ")
	n, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkBytesWritten measures how many bytes a process writes to the disk
// for each task, from its enqueue to its end. The process enqueues and runs a
// task every 20 ms. The benchmark simulates one task a second at 50 times the
// speed, so WriteEvery is 100 ms instead of 5 s. In the cases with a batch, the
// tasks have metadata, and one call of a bulk handler runs several of them.
// TMPDIR must be on a disk.
func BenchmarkBytesWritten(b *testing.B) {
	const pace = 20 * time.Millisecond
	for _, c := range []struct {
		name     string
		sync     runner.Sync
		existing bool // whether the database already exists, with SQLite's usual pages of 4 KiB
		seconds  int  // WriteEvery in seconds; the benchmark divides it by 50
		together int  // number of tasks that one call enqueues
		batch    bool
	}{
		{"full", runner.SyncFull, false, 0, 1, false},
		{"normal", runner.SyncNormal, false, 0, 1, false},
		{"flash/pages=4KiB", runner.SyncFlash, true, 5, 1, false},
		{"flash", runner.SyncFlash, false, 5, 1, false},
		{"flash/together=5", runner.SyncFlash, false, 5, 5, false},
		{"flash/every=30s", runner.SyncFlash, false, 30, 1, false},
		{"flash/every=30s/together=30", runner.SyncFlash, false, 30, 30, false},
		{"full/batch=5", runner.SyncFull, false, 0, 5, true},
		{"flash/batch=5", runner.SyncFlash, false, 5, 5, true},
		{"full/batch=30", runner.SyncFull, false, 0, 30, true},
		{"flash/batch=30", runner.SyncFlash, false, 5, 30, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "x.db")
			if c.existing {
				r, err := runner.Open(b.Context(), path, runner.Options{})
				if err != nil {
					b.Fatal(err)
				}
				r.Close()
			}
			r, err := runner.Open(b.Context(), path,
				runner.Options{Sync: c.sync, WriteEvery: time.Duration(c.seconds) * pace})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			h, spec := noop.Handler(func(context.Context, string) error { return nil }), noop.With(payload)
			if c.batch {
				h = noop.BulkHandler(c.together, func(context.Context, []jobs.BulkTask[string]) error { return nil })
				spec = noop.With(payload, jobs.Metadata(map[string]string{"device": "sensor-17", "unit": "celsius"}))
			}
			r.Register(h)
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			failed := make(chan error, 1)
			go func() { failed <- r.Work(ctx, runner.WorkOptions{Concurrency: 50}) }()
			before, tasks := writtenBytes(b), 0
			for b.Loop() {
				if _, err := r.EnqueueSeq(b.Context(), slices.Values(slices.Repeat([]jobs.Spec{spec}, c.together))); err != nil {
					b.Fatal(err)
				}
				tasks += c.together
				time.Sleep(pace * time.Duration(c.together))
			}
			stop()
			if err := <-failed; err != nil {
				b.Fatal(err)
			}
			b.ReportMetric((writtenBytes(b)-before)/float64(tasks), "bytes/task")
			b.ReportMetric(0, "ns/op")
		})
	}
}
