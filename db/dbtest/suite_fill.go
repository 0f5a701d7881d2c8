package dbtest

import (
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// fillWorker registers a worker that runs 3 tasks of the job many in one slot,
// and waits up to a minute for the third.
func (s *store) fillWorker() *db.Worker {
	s.Helper()
	return must(s.Register(s.Context(), db.WorkerInfo{Name: "w", Slots: 4, Lease: lease, StartedAt: s.now},
		[]db.ClaimJob{{Job: "many", MaxAttempts: 3, Batch: 3, Wait: time.Minute}, {Job: "one", MaxAttempts: 3}}))(s)
}

// wantFill runs a cycle with a claim for the given slots, and checks the
// claimed tasks and the time until the next start.
func (s *store) wantFill(w *db.Worker, claim db.Claim, want []int64, next time.Duration) {
	s.Helper()
	claim.Lease = lease
	done := must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Look: true, Claim: claim}))(s)
	s.wantIDs(ids(done.Claimed), want)
	if next == 0 && !done.NextStart.IsZero() || next > 0 && !done.NextStart.Equal(s.now.Add(next)) {
		s.Errorf("got next start %v, want %v after %v", done.NextStart, next, s.now)
	}
}

var fillTests = group{
	"a batch waits until it is full": func(s *store) {
		w := s.fillWorker()
		all := s.insert(manySpecs(2)...)
		s.wantFill(w, db.Claim{Free: 4}, nil, time.Minute)
		s.sleep(20 * time.Second)
		all = append(all, s.insert(manySpecs(2)...)...)
		s.wantFill(w, db.Claim{Free: 4}, all[:3], time.Minute)
		s.wantFill(w, db.Claim{Free: 1}, nil, time.Minute)
		s.sleep(time.Minute - time.Millisecond)
		s.wantFill(w, db.Claim{Free: 4}, nil, time.Millisecond)
		s.sleep(time.Millisecond)
		s.wantFill(w, db.Claim{Free: 4}, all[3:], 0)
	},
	"full batches start and the rest waits": func(s *store) {
		w := s.fillWorker()
		all := s.insert(manySpecs(8)...)
		s.wantFill(w, db.Claim{Free: 4}, all[:6], time.Minute)
		s.wantFill(w, db.Claim{Free: 4}, nil, time.Minute)
		more := s.insert(manySpecs(2)...)
		s.wantFill(w, db.Claim{Free: 1}, append(all[6:], more[0]), 0)
		s.wantFill(w, db.Claim{Free: 1}, nil, time.Minute)
	},
	"other tasks do not wait": func(s *store) {
		w := s.fillWorker()
		first := s.insert(manySpecs(1, jobs.Priority(9))...)
		one := s.insert(functionSpec("one"), functionSpec("one", jobs.Queue("other")))
		full := s.insert(manySpecs(3, jobs.Queue("other"))...)
		s.wantFill(w, db.Claim{Free: 4}, append(one, full...), time.Minute)
		s.sleep(time.Minute)
		s.wantFill(w, db.Claim{Free: 4}, first, 0)
	},
	"a task that is due later waits from then": func(s *store) {
		w := s.fillWorker()
		all := s.insert(manySpecs(1, jobs.At(s.now.Add(time.Hour)))...)
		s.wantFill(w, db.Claim{Free: 4}, nil, 0)
		s.sleep(time.Hour)
		s.wantFill(w, db.Claim{Free: 4}, nil, time.Minute)
		s.sleep(time.Minute)
		s.wantFill(w, db.Claim{Free: 4}, all, 0)
	},
	"a full batch waits for a limit": func(s *store) {
		w := s.fillWorker()
		target := db.Target{Kind: db.JobTarget, Name: "many"}
		if err := s.SetLimit(s.Context(), db.Limit{Target: target, Rate: 1, Per: time.Hour, Burst: 1}, s.now); err != nil {
			s.Fatal(err)
		}

		all := s.insert(manySpecs(7)...)
		s.wantFill(w, db.Claim{Free: 4}, all[:3], time.Minute) // the seventh task, alone in its batch, waits for a minute
		s.sleep(time.Minute)
		s.wantFill(w, db.Claim{Free: 4}, nil, 59*time.Minute)
		s.sleep(time.Hour)
		s.wantFill(w, db.Claim{Free: 4}, all[3:6], time.Hour)
	},
	"a claim of one task does not wait": func(s *store) {
		w := s.fillWorker()
		all := s.insert(manySpecs(1)...)
		s.wantFill(w, db.Claim{Free: 1, Only: all[0]}, all, 0)
	},
	"a suspect does not wait": func(s *store) {
		all := s.insert(manySpecs(3, jobs.MaxLosses(2))...)
		dead := s.fillWorker()
		s.wantFill(dead, db.Claim{Free: 1}, all, 0)
		s.sleep(2 * lease)
		w := s.fillWorker()
		expired := must(w.Leases(s.Context()))(s)
		must(w.Reap(s.Context(), must(w.Revoke(s.Context(), expired))(s), s.now))(s)
		s.finish(w, s.get(all[1]), taskspec.Outcome{})
		s.insert(manySpecs(1)...) // the batch that it begins holds no suspect back
		s.wantFill(w, db.Claim{Free: 4, Idle: true}, all[:1], time.Minute)
	},
}
