package engine

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// TestScheduleAtBootTicksOnceInEachBoot starts workers in several boots of a
// simulated machine.
func TestScheduleAtBootTicksOnceInEachBoot(t *testing.T) {
	machine := procfs
	procfs = t.TempDir()
	t.Cleanup(func() { procfs = machine })
	boot := func(id string) {
		t.Helper()
		dir := filepath.Join(procfs, "sys/kernel/random")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "boot_id"), []byte(id+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	onFakeTime(t, func(t *testing.T, o Options, runs *atomic.Int64) {
		o.UntilEmpty = true
		put := func(cron string) {
			t.Helper()
			s := taskspec.WithDefaults(jobs.Schedule{Name: "agent", Cron: cron, Spec: jobs.Define[struct{}]("work").With(struct{}{})})
			err := o.Store.ChangeSchedules(t.Context(), BootID(), now(), func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
				return []jobs.Schedule{s}, nil, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		work := func(when string, want int64) {
			t.Helper()
			time.Sleep(time.Minute)
			if err := newEngine(t, o).Run(t.Context(), context.Background()); err != nil {
				t.Fatal(err)
			}
			testkit.Equal(t, "runs "+when, runs.Load(), want)
		}
		boot("first")
		put("@reboot")
		work("in the boot in which the schedule was added", 0)
		boot("second")
		work("after a reboot", 1)
		work("after a restart of the worker", 1)
		put("@reboot")
		work("after the same definition was applied again", 1)
		boot("first")
		work("on another machine that had its tick", 1)
		boot("third")
		if _, err := o.Store.PauseSchedule(t.Context(), "agent", "ann", now()); err != nil {
			t.Fatal(err)
		}
		work("after a boot during a pause", 1)
		if _, err := o.Store.ResumeSchedule(t.Context(), "agent", func(jobs.Schedule) time.Time { return time.Time{} }, now()); err != nil {
			t.Fatal(err)
		}
		work("after the pause", 1)
		boot("fourth")
		work("after the next boot", 2)
		put("@daily")
		put("@reboot")
		work("in the boot in which the expression has changed", 2)
		boot("")
		work("on a system without boot ids", 2)
	})
}
