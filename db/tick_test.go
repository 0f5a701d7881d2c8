package db_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// TestOneTaskPerTick calls Tick on four handles at the same time, for each of
// several ticks. The handles act as four processes. Each tick must get exactly
// one task.
func TestOneTaskPerTick(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	var handles []*db.DB
	for range 4 {
		handles = append(handles, dbtest.OpenAt(t, path, db.Options{Create: true, Normal: true}))
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	command := jobs.Command(commands.Command{Argv: []string{"true"}})
	err := handles[0].ChangeSchedules(t.Context(), "", start, func([]jobs.Schedule) (put []jobs.Schedule, _ []string, _ error) {
		for i := range 5 {
			s := taskspec.WithDefaults(jobs.Schedule{Name: fmt.Sprint("s", i), Cron: "* * * * *", Spec: command, Overlap: jobs.OverlapAllow,
				NextAt: start})
			put = append(put, s)
		}
		return put, nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const minutes = 50
	plan := func(s jobs.Schedule, now time.Time) (due []time.Time, next time.Time) {
		for next = s.NextAt; !next.After(now); next = next.Add(time.Minute) {
			due = append(due, next)
		}
		return due, next
	}
	var added sync.Map
	for i := range minutes {
		now := start.Add(time.Duration(i) * time.Minute)
		var all sync.WaitGroup
		for _, d := range handles {
			all.Go(func() {
				done, err := d.Tick(t.Context(), now, false, func(s jobs.Schedule) ([]time.Time, time.Time, error) {
					due, next := plan(s, now)
					return due, next, nil
				}, nil)
				if err != nil {
					t.Error(err)
				}
				for _, one := range done {
					for _, tick := range one.Added {
						if _, twice := added.LoadOrStore(fmt.Sprint(one.Schedule.Name, tick.At), tick.TaskID); twice {
							t.Errorf("%s at %v: got two tasks, want one", one.Schedule.Name, tick.At)
						}
					}
				}
			})
		}
		all.Wait()
	}
	n := 0
	for range added.Range {
		n++
	}
	if got, err := handles[0].Count(t.Context(), jobs.Filter{}); err != nil || got != 5*minutes || n != got {
		t.Errorf("got %d tasks in the database, %d from Tick and error %v, want %d of each", got, n, err, 5*minutes)
	}
	runs, err := handles[0].Runs(t.Context(), "s1", 3)
	if err != nil || len(runs) != 3 || !slices.IsSortedFunc(runs, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("got runs %v and error %v, want 3 runs, the latest first", runs, err)
	}
}

// TestEveryFieldOfScheduleIsStored stores every field of a schedule and reads
// it back.
func TestEveryFieldOfScheduleIsStored(t *testing.T) {
	d := dbtest.Open(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := jobs.Schedule{Name: "s", Cron: "1 2 3 4 5", Zone: "Europe/Berlin", Overlap: jobs.OverlapAllow, CatchUp: jobs.CatchUpAll,
		CatchUpWindow: time.Hour, Jitter: time.Minute, NextAt: at.Add(time.Hour), CreatedAt: at, UpdatedAt: at,
		Spec: jobs.Command(commands.Command{Argv: []string{"a", "<&>\n"}, Path: "/bin/a", Dir: "/",
			Env: map[string]string{"A": "1"}, EnvFile: "/e",
			Input: []byte{0, 1}}, jobs.Label("l"), jobs.Queue("q"), jobs.Priority(-7), jobs.ExpiresIn(time.Hour),
			jobs.MaxAttempts(3), jobs.MaxLosses(0),
			jobs.Timeout(time.Second), func(s *jobs.Spec) { s.KillAfter = 0 },
			jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffLinear, Delay: 1500 * time.Millisecond, Max: time.Minute}),
			func(s *jobs.Spec) { s.RetryOn = "75" }, func(s *jobs.Spec) { s.OutputLimit = 7 })}
	if err := taskspec.ValidateSchedule(&s); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		putSchedule(t, d, s, at)
	}
	list, err := d.Schedules(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got schedules %+v and error %v, want one schedule", list, err)
	}
	got := list[0]
	if diff := taskspec.ScheduleChanges(&s, &got); diff != nil {
		t.Errorf("got differences %v, want none", diff)
	}
	testkit.Equal(t, "next tick and creation", fmt.Sprint(got.NextAt, got.CreatedAt), fmt.Sprint(s.NextAt, s.CreatedAt))
}

// putSchedule adds or replaces a schedule.
func putSchedule(t *testing.T, d *db.DB, s jobs.Schedule, at time.Time) {
	t.Helper()
	err := d.ChangeSchedules(t.Context(), "", at, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
		return []jobs.Schedule{s}, nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestScheduleKeepsItsLastRunWhenTaskIsDeleted deletes the last task of a
// schedule, and checks that the schedule keeps its state.
func TestScheduleKeepsItsLastRunWhenTaskIsDeleted(t *testing.T) {
	d := dbtest.Open(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := taskspec.WithDefaults(jobs.Schedule{Name: "s", Cron: "@hourly", NextAt: at.Add(time.Hour),
		Spec: jobs.Command(commands.Command{Argv: []string{"true"}})})
	putSchedule(t, d, s, at)
	id, found, err := d.RunSchedule(t.Context(), "s", "ann", at, nil)
	if err != nil || !found {
		t.Fatalf("run the schedule: got found: %v and error %v, want found", found, err)
	}
	if _, err := d.Apply(t.Context(), []int64{id}, db.Cancel("no", false, at)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		list, err := d.Schedules(t.Context())
		if err != nil || list[0].LastTaskID != id || list[0].LastState != jobs.Cancelled || !list[0].LastAt.Equal(at) {
			t.Fatalf("got schedules %+v and error %v, want last task %d, last state %s, last time %v", list, err, id, jobs.Cancelled, at)
		}
		if _, err := d.Apply(t.Context(), []int64{id}, db.Delete()); err != nil {
			t.Fatal(err)
		}
	}
}
