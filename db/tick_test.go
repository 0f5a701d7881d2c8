package db_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// TestOneTaskPerTick calls Tick for every tick on four handles at the same time, in place of four processes.
func TestOneTaskPerTick(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	var handles []*db.DB
	for range 4 {
		d, err := db.Open(t.Context(), path, db.Options{Create: true, Normal: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		handles = append(handles, d)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	command := jobs.Command{Argv: []string{"true"}}.With()
	err := handles[0].ChangeSchedules(t.Context(), start, func([]jobs.Schedule) (put []jobs.Schedule, _ []string, _ error) {
		for i := range 5 {
			s := jobs.Schedule{Name: fmt.Sprint("s", i), Cron: "* * * * *", Spec: command, Overlap: jobs.OverlapAllow,
				NextAt: start}.WithDefaults()
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
				})
				if err != nil {
					t.Error(err)
				}
				for _, one := range done {
					for _, tick := range one.Added {
						if _, twice := added.LoadOrStore(fmt.Sprint(one.Schedule.Name, tick.At), tick.TaskID); twice {
							t.Errorf("%s has two tasks for %v", one.Schedule.Name, tick.At)
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
	if have, err := handles[0].Count(t.Context(), jobs.Filter{}); err != nil || have != 5*minutes || n != have {
		t.Errorf("%d tasks, %d told, %v; want %d", have, n, err, 5*minutes)
	}
	runs, err := handles[0].Runs(t.Context(), "s1", 3)
	if err != nil || len(runs) != 3 || !slices.IsSortedFunc(runs, func(a, b int64) int { return int(b - a) }) {
		t.Errorf("got %+v, %v; want no error, len(runs) = 3, IsSortedFunc(runs, func(a, b int64) int { return int(b - a) })", runs, err)
	}
}

// TestScheduleKeepsItsDefinition stores every field of a schedule and reads it back.
func TestScheduleKeepsItsDefinition(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), db.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := jobs.Schedule{Name: "s", Cron: "1 2 3 4 5", Zone: "Europe/Berlin", Overlap: jobs.OverlapAllow, CatchUp: jobs.CatchUpAll,
		CatchUpWindow: time.Hour, Jitter: time.Minute, NextAt: at.Add(time.Hour), CreatedAt: at, UpdatedAt: at,
		Spec: jobs.Command{Argv: []string{"a", "<&>\n"}, Path: "/bin/a", Dir: "/", Env: map[string]string{"A": "1"}, EnvFile: "/e",
			Input: []byte{0, 1}}.
			With(jobs.Label("l"), jobs.Queue("q"), jobs.Priority(-7), jobs.ExpiresIn(time.Hour), jobs.MaxAttempts(3), jobs.MaxLosses(0),
				jobs.Timeout(time.Second), jobs.KillAfter(0),
				jobs.Retry(jobs.Backoff{Strategy: jobs.Linear, Delay: 1500 * time.Millisecond, Max: time.Minute}),
				jobs.RetryOn("75"), jobs.OutputLimit(7))}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err = d.ChangeSchedules(t.Context(), at, func(have []jobs.Schedule) ([]jobs.Schedule, []string, error) {
			return []jobs.Schedule{s}, nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := d.Schedules(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("got %+v, %v; want no error, len(list) = 1", list, err)
	}
	if diff := s.Differences(&list[0]); diff != nil || fmt.Sprint(s.NextAt, s.CreatedAt) != fmt.Sprint(list[0].NextAt, list[0].CreatedAt) {
		t.Errorf("got %v; %+v; want diff = nil, fmt.Sprint(s.NextAt, s.CreatedAt) = fmt.Sprint(list[0].NextAt, "+
			"list[0].CreatedAt)",
			diff, list[0])
	}
}

// TestEndOfLastRunOutlivesIt deletes the last task of a schedule, and checks that the schedule keeps its state.
func TestEndOfLastRunOutlivesIt(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), db.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := jobs.Schedule{Name: "s", Cron: "@hourly", NextAt: at.Add(time.Hour),
		Spec: jobs.Command{Argv: []string{"true"}}.With()}.WithDefaults()
	err = d.ChangeSchedules(t.Context(), at, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
		return []jobs.Schedule{s}, nil,
			nil
	})
	if err != nil {
		t.Fatal(err)
	}
	id, found, err := d.RunSchedule(t.Context(), "s", "ann", at)
	if err != nil || !found {
		t.Fatalf("got %+v, %v; want no error, found", found, err)
	}
	if _, err := d.Cancel(t.Context(), []int64{id}, "no", false, at); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		list, err := d.Schedules(t.Context())
		if err != nil || list[0].LastTaskID != id || list[0].LastState != jobs.Cancelled || !list[0].LastAt.Equal(at) {
			t.Fatalf("got %+v %v; want no error, list[0].LastTaskID = id, list[0].LastState = Cancelled, "+
				"list[0].LastAt.Equal(at)",
				list, err)
		}
		if _, err := d.Delete(t.Context(), []int64{id}); err != nil {
			t.Fatal(err)
		}
	}
}
