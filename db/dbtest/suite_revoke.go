package dbtest

import (
	"database/sql"
	"errors"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// revoke adds a task. One worker claims the task, and another worker revokes
// the claim.
func (s *store) revoke() (w, reaper *db.Worker, claimed jobs.Task, revoked []db.Lease) {
	s.Helper()
	s.insert(commandSpec())
	w, reaper = s.worker(), s.worker()
	claimed = s.claimOnly(w)
	s.sleep(time.Minute)
	if revoked = must(reaper.Revoke(s.Context(), s.leases(reaper)))(s); len(revoked) != 1 || !revoked[0].Revoked() ||
		revoked[0].Claimed() != claimsOf(claimed)[0] {
		s.Fatalf("got revoked claims %+v, want %+v", revoked, claimsOf(claimed))
	}
	return w, reaper, claimed, revoked
}

var revocations = group{
	"a revoked claim keeps its worker, and its task stays running": func(s *store) {
		w, reaper, claimed, _ := s.revoke()
		got := s.wantTask(claimed.ID, jobs.Running, "")
		if got.WorkerID != w.ID() || got.GenerationID != claimed.GenerationID+1 || got.Losses != 0 || got.Attempt != 1 ||
			len(s.attempts(claimed.ID)) != 0 {
			s.Errorf("got %+v, %d attempts; want the same worker, the next generation, attempt 1 and no loss",
				got, len(s.attempts(claimed.ID)))
		}
		if more := s.claim(reaper, 1); len(more) != 0 {
			s.Errorf("got claims %+v before the loss was recorded, want none", more)
		}
	},
	"a finish after a revocation is rejected": func(s *store) {
		w, reaper, claimed, revoked := s.revoke()
		for _, o := range []taskspec.Outcome{{}, failed, {Reason: jobs.ReasonSignal, Signal: 9}, {Reason: jobs.ReasonLost}} {
			if done := s.finish(w, claimed, o); !done.Fenced {
				s.Errorf("%+v: got %+v, want fenced", o, done)
			}
		}

		if done := s.finishAll(w, db.Finish{Task: claimed, Release: true}); !done[0].Fenced {
			s.Errorf("a release: got %+v, want it rejected", done[0])
		}

		s.wantTask(claimed.ID, jobs.Running, "")
		if reaped := must(reaper.Reap(s.Context(), revoked, s.now))(s); len(reaped) != 1 {
			s.Errorf("got reaped tasks %+v, want one", reaped)
		}

		s.wantTask(claimed.ID, jobs.Pending, jobs.ReasonLost)
	},
	"a heartbeat, step, report and output after a revocation are rejected": func(s *store) {
		w, _, claimed, _ := s.revoke()
		claim := claimsOf(claimed)[0]
		if owned := s.beat(w, claim); len(owned) != 0 {
			s.Errorf("heartbeat: got owned claims %v, want none", owned)
		}
		if owned := must(w.Owned(s.Context()))(s); len(owned) != 0 {
			s.Errorf("got owned claims %v, want none", owned)
		}
		if err := w.AddStep(s.Context(), nil, claim, 1, db.Step{Name: "late", At: s.now}); !errors.Is(err, jobs.ErrLost) {
			s.Errorf("step: got error %v, want %v", err, jobs.ErrLost)
		}

		out := db.Output{Add: []db.Chunk{{Seq: 1, Stream: "stdout", At: s.now, Data: []byte("late")}}}
		if err := w.WriteOutput(s.Context(), claimed, out); !errors.Is(err, jobs.ErrLost) {
			s.Errorf("output: got error %v, want %v", err, jobs.ErrLost)
		}
		if err := w.WriteProgress(s.Context(), []db.Report{{ClaimID: claim, Progress: []byte(`{"done":1}`)}}); err != nil {
			s.Error(err)
		}
		if got := s.wantTask(claimed.ID, jobs.Running, ""); got.Progress != nil || len(s.steps(claimed.ID)) != 0 ||
			!got.LeaseExpiresAt.IsZero() {
			s.Errorf("got %+v, steps %v; want no progress, no steps and no lease", got, s.steps(claimed.ID))
		}
	},
	"FinishTx after a revocation is rejected": func(s *store) {
		w, _, claimed, _ := s.revoke()
		outer := must(s.begin())(s)
		defer func() { _ = outer.Rollback() }()

		err := w.FinishTx(s.Context(), outer, db.Finish{Task: claimed, Outcome: taskspec.Outcome{Started: s.now, Finished: s.now}}, s.now)
		if !errors.Is(err, jobs.ErrLost) {
			s.Errorf("got %v, want %v", err, jobs.ErrLost)
		}
		s.wantTask(claimed.ID, jobs.Running, "")
	},
	"any reaper can record the loss of a revoked claim, once": func(s *store) {
		w, reaper, claimed, _ := s.revoke()
		other := s.worker()
		seen := s.leases(other)
		if len(seen) != 1 || !seen[0].Revoked() || seen[0].WorkerID != w.ID() || seen[0].Claimed() != claimsOf(claimed)[0] {
			s.Fatalf("got leases %+v, want one that is revoked, of worker %s and claim %v", seen, w.ID(), claimsOf(claimed)[0])
		}
		if again := must(other.Revoke(s.Context(), seen))(s); !slices.Equal(again, seen) {
			s.Errorf("second revocation: got %+v, want %+v", again, seen)
		}
		if n := len(must(other.Reap(s.Context(), seen, s.now))(s)) + len(must(reaper.Reap(s.Context(), seen, s.now))(s)); n != 1 {
			s.Errorf("got %d reaped tasks, want 1", n)
		}

		got := s.wantTask(claimed.ID, jobs.Pending, jobs.ReasonLost)
		if a := s.attempts(claimed.ID); got.Losses != 1 || len(a) != 1 || a[0].GenerationID != claimed.GenerationID ||
			a[0].WorkerID != w.ID() {
			s.Errorf("got task %+v and attempts %+v; want one loss, and one attempt of generation %d", got, a, claimed.GenerationID)
		}
		if again := s.claimOnly(other); again.Losses != 1 || again.Attempt != 1 {
			s.Errorf("the next claim: got %d losses, attempt %d; want 1, 1", again.Losses, again.Attempt)
		}
	},
	"only revoked claims can be recorded as lost": func(s *store) {
		id := s.insert(commandSpec())[0]
		w, reaper := s.worker(), s.worker()
		s.claimOnly(w)
		if reaped := must(reaper.Reap(s.Context(), s.leases(reaper), s.now))(s); len(reaped) != 0 {
			s.Errorf("got reaped tasks %+v, want none", reaped)
		}
		s.wantTask(id, jobs.Running, "")
	},
	"all claims of a dead worker are reaped, revoked or not": func(s *store) {
		w, reaper, claimed, _ := s.revoke()
		s.insert(commandSpec())
		second := s.claimOnly(w)
		if reaped := must(reaper.ReapDead(s.Context(), w.Number(), s.now))(s); len(reaped) != 2 {
			s.Errorf("got reaped tasks %+v, want both", reaped)
		}
		for _, c := range []jobs.Task{claimed, second} {
			if a := s.attempts(c.ID); len(a) != 1 || a[0].GenerationID != c.GenerationID || s.get(c.ID).Losses != 1 {
				s.Errorf("got %+v, attempts %+v; want one loss and one attempt of generation %d", s.get(c.ID), a, c.GenerationID)
			}
		}
	},
	"a revoked claim with a cancel request is cancelled": func(s *store) {
		_, reaper, claimed, revoked := s.revoke()
		s.apply(db.Cancel("by ann", false, s.now), claimed.ID)
		must(reaper.Reap(s.Context(), revoked, s.now))(s)
		s.wantTask(claimed.ID, jobs.Cancelled, jobs.ReasonCancelled)
	},
}

// begin begins a transaction of another program.
func (s *store) begin() (*sql.Tx, error) { return s.raw.BeginTx(s.Context(), nil) }
