package dbtest

import (
	"errors"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// batchWorker registers a worker that runs up to 3 tasks of the job many in one
// slot, and single tasks of the job one.
func (s *store) batchWorker() *db.Worker {
	s.Helper()
	return must(s.Register(s.Context(), db.WorkerInfo{Name: "w", Slots: 4, Lease: lease, StartedAt: s.now},
		[]db.ClaimJob{{Job: "many", MaxAttempts: 3, Batch: 3}, {Job: "one", MaxAttempts: 3}}))(s)
}

// cycle runs a cycle with a claim for the given slots, and returns the ids of
// the claimed tasks.
func (s *store) cycle(w *db.Worker, claim db.Claim) []int64 {
	s.Helper()
	claim.Lease = lease
	return ids(must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Claim: claim}))(s).Claimed)
}

func manySpecs(n int, options ...jobs.Option) (specs []jobs.Spec) {
	for range n {
		specs = append(specs, functionSpec("many", options...))
	}
	return specs
}

var batchTests = group{
	"a slot of a job with batches gets several tasks": func(s *store) {
		w := s.batchWorker()
		all := s.insert(manySpecs(5)...)
		s.wantIDs(s.cycle(w, db.Claim{Free: 1}), all[:3])
		s.wantIDs(s.cycle(w, db.Claim{Free: 1}), all[3:])
		s.wantIDs(s.cycle(w, db.Claim{Free: 1}), nil)
		all = s.insert(manySpecs(7)...)
		s.wantIDs(s.cycle(w, db.Claim{Free: 2}), all[:6])
	},
	"a batch gets tasks of its own job and queue in their order": func(s *store) {
		w := s.batchWorker()
		other := s.insert(manySpecs(1, jobs.Queue("other"))...)[0]
		one := s.insert(functionSpec("one", jobs.Priority(8)))[0]
		low := s.insert(manySpecs(1, jobs.Priority(1))...)[0]
		many := s.insert(manySpecs(2, jobs.Priority(9))...)
		s.wantIDs(s.cycle(w, db.Claim{Free: 1, Limit: map[string]int{"default": 1}}), []int64{many[0], many[1], low})
		s.wantIDs(s.cycle(w, db.Claim{Free: 1, Limit: map[string]int{"default": 1}}), []int64{one})
		s.wantIDs(s.cycle(w, db.Claim{Free: 2}), []int64{other})
	},
	"a task that is tried again without a delay keeps its place": func(s *store) {
		w := s.batchWorker()
		all := s.insert(manySpecs(5)...)
		for _, again := range []error{jobs.RetryIn(0, errors.New("boom")), jobs.Snooze(0)} {
			done := must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Claim: db.Claim{Free: 1, Lease: lease}}))(s)
			s.wantIDs(ids(done.Claimed), all[:3])
			var ends []db.Finish
			for _, task := range done.Claimed {
				ends = append(ends, db.Finish{Task: task, Outcome: taskspec.OutcomeOf(nil, again)})
			}

			done = must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Finish: ends, Claim: db.Claim{Free: 1, Lease: lease}}))(s)
			s.wantIDs(ids(done.Claimed), all[:3])
			for _, task := range done.Claimed {
				s.finish(w, task, taskspec.OutcomeOf(nil, jobs.RetryIn(0, errors.New("boom"))))
			}

			s.look(w)
		}
	},
	"single tasks take one slot each": func(s *store) {
		w := s.batchWorker()
		all := s.insert(functionSpec("one"), functionSpec("many"), functionSpec("one"), functionSpec("many"), functionSpec("one"))
		s.wantIDs(s.cycle(w, db.Claim{Free: 2}), []int64{all[0], all[1], all[3]})
		s.wantIDs(s.cycle(w, db.Claim{Free: 2}), []int64{all[2], all[4]})
	},
	"limits hold for each task of a batch": func(s *store) {
		for _, target := range []db.Target{{Kind: db.JobTarget, Name: "many"}, {Kind: db.QueueTarget, Name: "default"},
			{Kind: db.AllTarget}} {
			w := s.batchWorker()
			all := s.insert(manySpecs(5)...)
			if err := s.SetLimit(s.Context(), db.Limit{Target: target, Running: 2}, s.now); err != nil {
				s.Fatal(err)
			}

			s.wantIDs(s.cycle(w, db.Claim{Free: 4}), all[:2])
			s.wantIDs(s.cycle(w, db.Claim{Free: 4}), nil)
			must(s.RemoveLimit(s.Context(), target, s.now))(s)
			s.wantIDs(s.cycle(w, db.Claim{Free: 1}), all[2:])
			for _, id := range all {
				s.finish(w, s.get(id), taskspec.Outcome{})
			}
		}
	},
	"a rate counts a batch as one start": func(s *store) {
		for _, target := range []db.Target{{Kind: db.JobTarget, Name: "many"}, {Kind: db.QueueTarget, Name: "default"},
			{Kind: db.AllTarget}} {
			w := s.batchWorker()
			all := s.insert(manySpecs(13)...)
			if err := s.SetLimit(s.Context(), db.Limit{Target: target, Rate: 2, Per: time.Minute, Burst: 2}, s.now); err != nil {
				s.Fatal(err)
			}

			s.wantIDs(s.cycle(w, db.Claim{Free: 4}), append(all[:2:2], all[2:6]...))
			s.wantIDs(s.cycle(w, db.Claim{Free: 4}), nil)
			s.sleep(time.Minute / 2)
			s.wantIDs(s.cycle(w, db.Claim{Free: 4, Limit: map[string]int{"default": 4}}), all[6:9])
			s.sleep(time.Minute)
			s.wantIDs(s.cycle(w, db.Claim{Free: 1}), all[9:12])
			s.wantIDs(s.cycle(w, db.Claim{Free: 1}), all[12:])
			must(s.RemoveLimit(s.Context(), target, s.now))(s)
			for _, id := range all {
				s.finish(w, s.get(id), taskspec.Outcome{})
			}
		}
	},
	"a rate that counts one batch as one start leaves a start to another task": func(s *store) {
		w := s.batchWorker()
		many := s.insert(manySpecs(2)...)
		one := s.insert(functionSpec("one"), functionSpec("one"))
		if err := s.SetLimit(s.Context(), db.Limit{Target: db.Target{Kind: db.AllTarget}, Rate: 2, Per: time.Minute, Burst: 2},
			s.now); err != nil {
			s.Fatal(err)
		}

		claim := db.Claim{Free: 4, Lease: lease}
		done := must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Claim: claim}))(s)
		s.wantIDs(ids(done.Claimed), append(many, one[0]))
		if want := s.now.Add(time.Minute / 2); !done.NextStart.Equal(want) {
			s.Errorf("got next start %v, want %v", done.NextStart, want)
		}
	},
	"a slot that a batch leaves free goes to another task": func(s *store) {
		w := s.batchWorker()
		many := s.insert(manySpecs(3)...)
		one := s.insert(functionSpec("one"), functionSpec("one"))
		s.wantIDs(s.cycle(w, db.Claim{Free: 2}), append(many, one[0]))
	},
	"a paused queue fills no batch": func(s *store) {
		w := s.batchWorker()
		s.insert(manySpecs(2, jobs.Queue("paused"))...)
		all := s.insert(manySpecs(2)...)
		if err := s.Pause(s.Context(), []string{"paused"}, db.Pause{At: s.now}); err != nil {
			s.Fatal(err)
		}
		s.wantIDs(s.cycle(w, db.Claim{Free: 1}), all)
	},
	"the next tick is that of a schedule which the worker can enqueue": func(s *store) {
		change := func(put ...jobs.Schedule) {
			must(0, s.ChangeSchedules(s.Context(), "", s.now, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
				return put, nil, nil
			}))(s)
		}
		made := taskspec.WithDefaults(jobs.Schedule{Name: "made", Cron: "@hourly", Spec: functionSpec("f"), OnTick: true, NextAt: s.now})
		plain := taskspec.WithDefaults(jobs.Schedule{Name: "plain", Cron: "@hourly", Spec: functionSpec("f"),
			NextAt: s.now.Add(time.Minute)})
		change(made, plain)
		list := must(s.Schedules(s.Context()))(s)
		if !list[0].OnTick || list[1].OnTick {
			s.Errorf("got on tick %v and %v, want true and false", list[0].OnTick, list[1].OnTick)
		}

		wantNext := func(except []jobs.Schedule, want time.Time) {
			s.Helper()
			if next := must(s.NextTick(s.Context(), except))(s); !next.Equal(want) {
				s.Errorf("got next tick %v, want %v", next, want)
			}
		}
		wantNext(nil, s.now)
		wantNext(list[:1], plain.NextAt)
		wantNext(list, time.Time{})
		s.sleep(time.Millisecond)
		change(made)
		wantNext(list, made.NextAt) // it has changed since list was read, so NextTick doesn't leave it out
		refuse := errors.New("no function")
		done := must(s.Tick(s.Context(), s.now, false, func(s jobs.Schedule) ([]time.Time, time.Time, error) {
			return []time.Time{s.NextAt, s.NextAt.Add(1)}, s.NextAt.Add(time.Hour), nil
		}, func(*jobs.Schedule, *jobs.Spec) error { return refuse }))(s)
		if len(done) != 1 || !errors.Is(done[0].Err, refuse) || len(done[0].Added) > 0 {
			s.Errorf("got %+v, want one schedule with the error %v and no tasks", done, refuse)
		}

		wantNext(nil, made.NextAt)
	},
	"a suspect runs alone": func(s *store) {
		all := s.insert(manySpecs(4, jobs.MaxLosses(2))...)
		dead := s.batchWorker()
		s.wantIDs(s.cycle(dead, db.Claim{Free: 1}), all[:3])
		s.sleep(2 * lease)
		w := s.batchWorker()
		expired := must(w.Leases(s.Context()))(s)
		must(w.Reap(s.Context(), must(w.Revoke(s.Context(), expired))(s), s.now))(s)
		s.wantIDs(ids(s.claim(w, 4)), all[:1])
		s.wantIDs(s.cycle(w, db.Claim{Free: 4}), all[3:])
	},
}
