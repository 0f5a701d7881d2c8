package dbtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
)

// addFinished adds n tasks, claims them and finishes them with an outcome.
func (s *store) addFinished(w *db.Worker, n int, o taskspec.Outcome) []int64 {
	s.Helper()
	specs := make([]jobs.Spec, n)
	for i := range specs {
		specs[i] = commandSpec()
	}

	s.insert(specs...)
	var list []db.Finish
	for _, t := range s.claim(w, n) {
		list = append(list, db.Finish{Task: t, Outcome: s.withTimes(t, o),
			Output: db.Output{Add: []db.Chunk{{Seq: 1, Stream: "stdout", At: s.now, Data: []byte("x")}}}})
	}

	ids := make([]int64, 0, n)
	for i, done := range s.finishAll(w, list...) {
		if !done.Change.State.Finished() {
			s.Fatalf("got state %s, want a finished one", done.Change.State)
		}
		ids = append(ids, list[i].Task.ID)
	}

	return ids
}

// pruneAll calls Prune for each kind of tasks until Prune deletes nothing. It
// returns the number of tasks that each transaction deleted.
func (s *store) pruneAll(p ...db.Prune) (steps []int) {
	s.Helper()
	for _, p := range p {
		for more := true; more; {
			done := must(s.Prune(s.Context(), p))(s)
			steps = append(steps, done.Tasks)
			p.From, more = done.From, done.More
		}
	}

	return steps
}

// bothBefore says that all tasks that ended before a time are deleted, first
// those that did not fail.
func bothBefore(at time.Time) []db.Prune { return []db.Prune{{Before: at}, {Failed: true, Before: at}} }

func (s *store) allIDs() []int64 {
	s.Helper()
	return must(s.IDs(s.Context(), jobs.Filter{OldestFirst: true}))(s)
}

var prunes = group{
	"a tick forgets some of the ended tasks of its schedule": func(s *store) {
		w := s.worker()
		schedule := taskspec.WithDefaults(jobs.Schedule{Name: "reading", Cron: "@every 1s", Overlap: jobs.OverlapAllow,
			Spec: commandSpec()})
		schedule.NextAt = s.now
		if err := s.ChangeSchedules(s.Context(), "", s.now, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
			return []jobs.Schedule{schedule}, nil, nil
		}); err != nil {
			s.Fatal(err)
		}

		tick := func() {
			s.Helper()
			s.sleep(time.Second)
			must(s.Tick(s.Context(), s.now, true, func(jobs.Schedule) ([]time.Time, time.Time, error) {
				return []time.Time{s.now}, s.now.Add(time.Second), nil
			}, nil))(s)
		}
		want := func(when string, want int64) {
			s.Helper()
			if got := s.number(`SELECT count(*) FROM schedule_open`); got != want {
				s.Errorf("%s: got %d rows, want %d", when, got, want)
			}
		}
		for range 50 {
			tick()
		}

		want("50 unfinished tasks", 50)
		var list []db.Finish
		for _, t := range s.claim(w, 50) {
			list = append(list, db.Finish{Task: t, Outcome: s.withTimes(t, taskspec.Outcome{})})
		}

		s.finishAll(w, list...)
		tick()
		want("a tick, which looks at 20 of them", 50-20+1)
		tick()
		tick()
		want("two more ticks", 3)
	},
	"prune deletes old tasks with all their data and keeps the others": func(s *store) {
		w := s.worker()
		old := s.addFinished(w, 3, taskspec.Outcome{})
		oldFailed := s.addFinished(w, 2, failed)
		s.sleep(time.Hour)
		young := s.addFinished(w, 2, taskspec.Outcome{})
		waits := s.insert(commandSpec(), commandSpec(jobs.In(time.Hour)))
		running := s.claim(w, 1)
		before := s.now.Add(-time.Minute)
		if steps := s.pruneAll(db.Prune{Before: before}); !slices.Equal(steps, []int{3}) {
			s.Errorf("got steps %+v, want %+v", steps, []int{3})
		}

		s.wantIDs(s.allIDs(), slices.Concat(oldFailed, young, waits))
		// The rows belong to the two failed tasks and to the two tasks that
		// have just completed. The table attempts has no row for a completed
		// attempt.
		for table, want := range map[string]int64{"attempts_view": 4, "attempts": 2, "output": 4} {
			if n := s.number(`SELECT count(*) FROM ` + table); n != want {
				s.Errorf("got %d rows of %s after %d tasks, want %d", n, table, len(old)+4, want)
			}
		}

		if steps := s.pruneAll(db.Prune{Failed: true, Before: before}); !slices.Equal(steps, []int{2}) {
			s.Errorf("got steps %+v, want %+v", steps, []int{2})
		}

		s.wantIDs(s.allIDs(), slices.Concat(young, waits))
		s.finish(w, running[0], taskspec.Outcome{})
	},
	"a task that an unfinished task depends on stays": func(s *store) {
		w := s.worker()
		a, b := s.addFinished(w, 1, taskspec.Outcome{Result: json.RawMessage(`7`)})[0], s.addFinished(w, 1, failed)[0]
		paused := s.insert(commandSpec(jobs.DependsOn(a), jobs.DependsOnAny(b), jobs.Paused()))[0]
		s.addFinished(w, 1, taskspec.Outcome{}) // nobody needs this one
		s.sleep(8 * 24 * time.Hour)
		all := bothBefore(s.now)
		if steps := s.pruneAll(all...); !slices.Equal(steps, []int{1, 0}) {
			s.Errorf("got steps %+v, want %+v", steps, []int{1, 0})
		}

		s.wantIDs(s.allIDs(), []int64{a, b, paused})
		for i, m := range s.apply(db.Delete(), a, b, paused) {
			if m.Done || m.NeededBy != []int64{paused, paused, 0}[i] {
				s.Errorf("got %+v, want that tasks %d and %d are needed by task %d", m, a, b, paused)
			}
		}

		s.apply(db.ResumeTask("me", s.now), paused)
		task := s.claimOnly(w)
		if steps := s.pruneAll(all...); !slices.Equal(steps, []int{0, 0}) {
			s.Errorf("while it runs: got steps %+v, want %+v", steps, []int{0, 0})
		}

		var results []string
		if err := s.Upstream(s.Context(), paused, func(t jobs.Task) error {
			results = append(results, string(t.Result))
			return nil
		}); err != nil || !slices.Equal(results, []string{"7", ""}) {
			s.Errorf("got upstream %q and error %v, want 7 and no result", results, err)
		}

		s.finish(w, task, taskspec.Outcome{})
		if steps := s.pruneAll(all...); !slices.Equal(steps, []int{1, 1}) {
			s.Errorf("after its end: got steps %+v, want %+v", steps, []int{1, 1})
		}
	},
	"a row that cannot be deleted does not keep the others": func(s *store) {
		w := s.worker()
		tasks := s.addFinished(w, 5, taskspec.Outcome{})
		s.exec(fmt.Sprintf(`UPDATE tasks SET parts = 1 WHERE id = %d`, tasks[0])) // there is no input
		s.sleep(time.Hour)
		if s.Server() == nil {
			s.exec(fmt.Sprintf(`CREATE TRIGGER refuse BEFORE DELETE ON tasks WHEN OLD.id = %d BEGIN SELECT RAISE(ABORT, 'bad row'); END`,
				tasks[1]))
			tasks = slices.Delete(tasks, 1, 2)
		}

		done, err := s.Prune(s.Context(), db.Prune{Before: s.now})
		if done.Tasks != len(tasks) || (err != nil) != (len(tasks) == 4) {
			s.Errorf("got %d deleted tasks and error %v, want %d", done.Tasks, err, len(tasks))
		}
		if s.Server() == nil {
			s.exec(`DROP TRIGGER refuse`)
		}
	},
	"failed tasks are deleted apart from the others": func(s *store) {
		w := s.worker()
		s.addFinished(w, 2, taskspec.Outcome{})
		s.addFinished(w, 2, failed)
		s.sleep(time.Hour)
		if steps := s.pruneAll(bothBefore(s.now)...); !slices.Equal(steps, []int{2, 2}) {
			s.Errorf("got steps %+v, want %+v", steps, []int{2, 2})
		}
	},
	"a transaction deletes at most 500 tasks and a few MiB": func(s *store) {
		w := s.worker()
		s.addFinished(w, 1200, taskspec.Outcome{})
		s.addFinished(w, 300, failed)
		s.sleep(time.Hour)
		if steps := s.pruneAll(bothBefore(s.now)...); !slices.Equal(steps, []int{500, 500, 200, 300}) {
			s.Errorf("got steps %+v, want %+v", steps, []int{500, 500, 200, 300})
		}

		s.addFinished(w, 10, taskspec.Outcome{Result: json.RawMessage(`"` + strings.Repeat("x", usercode.MaxResult-2) + `"`)})
		s.sleep(time.Hour)
		if steps := s.pruneAll(db.Prune{Before: s.now}); !slices.Equal(steps, []int{7, 3}) {
			s.Errorf("got steps %+v, want %+v", steps, []int{7, 3})
		}
	},
	"a task that was retried meanwhile is not deleted": func(s *store) {
		w := s.worker()
		id := s.addFinished(w, 1, failed)[0]
		s.sleep(time.Hour)
		cut := s.now
		s.sleep(time.Minute)
		s.apply(db.Retry(s.now, s.now, false), id)
		s.finish(w, s.claimOnly(w), taskspec.Outcome{})
		if steps := s.pruneAll(bothBefore(cut)...); !slices.Equal(steps, []int{0, 0}) {
			s.Errorf("got steps %+v, want %+v", steps, []int{0, 0})
		}
		s.wantIDs(s.allIDs(), []int64{id})
	},
	"a worker leaves the old tasks to another worker that deletes them already": func(s *store) {
		const n = 3000
		s.addFinished(s.worker(), n, taskspec.Outcome{})
		s.sleep(time.Minute)
		var deleted atomic.Int64
		for _, err := range inParallel(4, func(int) error {
			for p := (db.Prune{Before: s.now}); ; {
				done, err := s.Prune(s.Context(), p)
				if err != nil || !done.More {
					deleted.Add(int64(done.Tasks))
					return err
				}
				if done.Tasks == 0 {
					return errors.New("got no deleted tasks and more to delete, want that this worker stops")
				}
				deleted.Add(int64(done.Tasks))
				p.From = done.From
			}
		}) {
			if err != nil {
				s.Error(err)
			}
		}

		if deleted.Load() != n {
			s.Errorf("got %d deleted tasks, want %d", deleted.Load(), n)
		}
	},
	"prune reads tasks with a longer retention once": func(s *store) {
		w := s.worker()
		s.addFinished(w, 5, failed)
		s.sleep(time.Minute)
		s.addFinished(w, 2, taskspec.Outcome{})
		s.sleep(time.Minute)
		done := must(s.Prune(s.Context(), db.Prune{Before: s.now}))(s)
		if done.Tasks != 2 || done.More || !done.From.Equal(s.now) {
			s.Errorf("got tasks %v, more %v, from %v; want 2, false, %v", done.Tasks, done.More, done.From, s.now)
		}

		s.addFinished(w, 1, taskspec.Outcome{})
		s.sleep(time.Minute)
		if done = must(s.Prune(s.Context(), db.Prune{From: done.From, Before: s.now}))(s); done.Tasks != 1 {
			s.Errorf("got tasks %v, want 1", done.Tasks)
		}
	},
	"a task with a retention of its own": func(s *store) {
		w := s.worker()
		id := s.insert(commandSpec(jobs.KeepFor(time.Hour)))[0]
		s.finish(w, s.claimOnly(w), taskspec.Outcome{})
		for _, minutes := range []time.Duration{59, 2} {
			s.sleep(minutes * time.Minute)
			steps := s.pruneAll(db.Prune{Before: s.now}, db.Prune{Failed: true, Before: s.now}, db.Prune{Kept: true, Before: s.now})
			if want := []int{0, 0, map[time.Duration]int{59: 0, 2: 1}[minutes]}; !slices.Equal(steps, want) {
				s.Errorf("after %v minutes: got %v deleted tasks, want %v", minutes, steps, want)
			}
		}
		if n := s.number(fmt.Sprintf(`SELECT count(*) FROM tasks WHERE id = %d`, id)); n != 0 {
			s.Errorf("got %d tasks %d, want none", n, id)
		}
	},
	"old workers are deleted unless they own a task": func(s *store) {
		gone, holds := s.worker(), s.worker()
		s.insert(commandSpec())
		s.claimOnly(holds)
		if err := gone.End(s.Context(), s.now); err != nil {
			s.Fatal(err)
		}

		s.sleep(time.Hour)
		s.worker()
		if err := s.PruneWorkers(s.Context(), s.now.Add(-time.Minute)); err != nil {
			s.Fatal(err)
		}
		if n := s.number(`SELECT count(*) FROM workers`); n != 2 {
			s.Errorf("got %v, want 2", n)
		}
	},
	"counters are rolled up to hours without losing or doubling counts": func(s *store) {
		w := s.worker()
		want := map[jobs.State]int{}
		for range 20 {
			s.addFinished(w, 3, taskspec.Outcome{})
			s.addFinished(w, 1, failed)
			want[jobs.Completed] += 3
			want[jobs.Failed]++
			s.sleep(23 * time.Minute)
			if err := s.RollUp(s.Context(), s.now.Add(-2*time.Hour), s.now.Add(-24*time.Hour)); err != nil {
				s.Fatal(err)
			}
		}

		got := must(s.Throughput(s.Context(), start, 24*time.Hour, 1))(s)[0]
		if !maps.Equal(got, want) {
			s.Errorf("got %v, want %v", got, want)
		}

		minutes, hours := s.number(`SELECT min(minute) FROM counters`), s.number(`SELECT max(hour) FROM counter_hours`)
		if limit := s.now.Add(-2*time.Hour).Unix() / 3600; minutes/60 < limit || hours >= limit {
			s.Errorf("got minutes from hour %d on and hours up to %d, want the change at hour %d", minutes/60, hours, limit)
		}
		if err := s.RollUp(s.Context(), s.now, s.now); err != nil {
			s.Fatal(err)
		}
		if left := s.number(`SELECT count(*) FROM counters`) + s.number(`SELECT count(*) FROM counter_hours`); left > 2 {
			s.Errorf("got %d rows, want at most 2", left)
		}
	},
	"times are those of the last attempts of the last tasks that ended": func(s *store) {
		w := s.worker()
		s.addFinished(w, 1, taskspec.Outcome{})
		s.sleep(2 * time.Hour)
		since := s.now
		s.insert(commandSpec(jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{Delay: time.Minute, Max: time.Minute})), commandSpec())
		s.sleep(3 * time.Second)
		for _, t := range s.claim(w, 2) {
			s.finish(w, t, failed)
		}

		s.sleep(2 * time.Minute)
		second := s.claimOnly(w)
		s.sleep(5 * time.Second)
		s.finish(w, second, taskspec.Outcome{})

		wait := second.StartedAt.Sub(second.RunAt)
		for _, want := range [][2][]time.Duration{
			{{3 * time.Second, wait}, {0, 5 * time.Second}},
			{{wait}, {5 * time.Second}},
		} {
			most := len(want[0])
			waits, runs, err := s.Times(s.Context(), since, most)
			if err != nil || !slices.Equal(waits, want[0]) || !slices.Equal(runs, want[1]) {
				s.Errorf("last %d tasks: got waits %v, runs %v, error %v; want %v", most, waits, runs, err, want)
			}
		}
	},
	"the file stops growing, and shrinks when idle": func(s *store) {
		if s.Server() != nil {
			return // PostgreSQL frees the space by itself (autovacuum)
		}

		w := s.worker()
		var sizes []int64
		for range 8 {
			s.addFinished(w, 400, taskspec.Outcome{Result: []byte(`"` + string(slices.Repeat([]byte("x"), 2000)) + `"`)})
			s.sleep(time.Hour)
			s.pruneAll(db.Prune{Before: s.now.Add(-90 * time.Minute)})
			s.exec(`DELETE FROM history`) // the table history of the test would grow with each change
			sizes = append(sizes, s.number(`SELECT page_count * 4096 FROM pragma_page_count`))
		}

		if sizes[7] > sizes[3]*21/20 {
			s.Errorf("got a file of %d bytes after 8 rounds, want at most %d, 5 %% more than after 4", sizes[7], sizes[3]*21/20)
		}

		s.pruneAll(db.Prune{Before: s.now})
		for must(s.Vacuum(s.Context()))(s) {
		}
		if after := s.number(`SELECT page_count * 4096 FROM pragma_page_count`); after > sizes[7]*3/4 {
			s.Errorf("got %d bytes after vacuum, want at most three quarters of %d", after, sizes[7])
		}
	},
}
