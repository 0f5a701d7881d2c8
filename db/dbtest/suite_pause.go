package dbtest

import (
	"maps"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

func (s *store) pause(queues ...string) {
	s.Helper()
	s.pauseUntil(time.Time{}, queues...)
}

func (s *store) pauseUntil(until time.Time, queues ...string) {
	s.Helper()
	if err := s.Pause(s.Context(), queues, db.Pause{At: s.now, By: "ann", Until: until}); err != nil {
		s.Fatal(err)
	}
}

func (s *store) resume(queues ...string) {
	s.Helper()
	if err := s.Resume(s.Context(), queues); err != nil {
		s.Fatal(err)
	}
}

func (s *store) pauses() map[string]db.Pause {
	s.Helper()
	return must(s.Pauses(s.Context(), s.now))(s)
}

var pauses = group{
	"a pause of deletions pauses no queue, and only its own resume ends it": func(s *store) {
		id := s.insert(commandSpec(jobs.Queue("a")))[0]
		p := db.Pause{At: s.now, By: "ann", Reason: "the clock jumped", Until: s.now.Add(time.Hour)}
		deletion := []string{db.DeletionPause}
		err := func(err error) {
			s.Helper()
			if err != nil {
				s.Error(err)
			}
		}
		err(s.Pause(s.Context(), deletion, db.Pause{At: s.now.Add(1000 * time.Hour), By: "bob", Until: s.now.Add(1001 * time.Hour)}))
		err(s.Pause(s.Context(), deletion, p))
		s.resume(db.AllQueues)
		if all := s.pauses(); all[db.DeletionPause] != p || len(all) != 1 {
			s.Errorf("got %v, want only %v", all, p)
		}
		if stats := must(s.Queues(s.Context(), s.now, s.now))(s); len(stats) != 1 || !stats["a"].Pause.At.IsZero() {
			s.Errorf("got %+v, want the queue of the task, not paused", stats)
		}

		s.wantIDs(ids(s.claim(s.worker(), 9)), []int64{id})
		err(s.Resume(s.Context(), deletion))
		err(s.Resume(s.Context(), deletion)) // a second call has no effect
		if all := s.pauses(); len(all) != 0 {
			s.Errorf("got %v, want none", all)
		}
	},
	"claims skip paused queues only": func(s *store) {
		all := s.insert(commandSpec(jobs.Queue("a")), commandSpec(jobs.Queue("b")), commandSpec(jobs.Queue("a")))
		w := s.worker()
		s.pause("a", "unheard-of")
		s.wantIDs(ids(s.claim(w, 9)), all[1:2])
		s.wantIDs(ids(s.claim(w, 9)), nil)
		s.resume("a")
		s.wantIDs(ids(s.claim(w, 9)), []int64{all[0], all[2]})
	},
	"a worker with named queues respects pauses too": func(s *store) {
		all := s.insert(commandSpec(jobs.Queue("a")), commandSpec(jobs.Queue("b")))
		w := s.worker()
		s.pause("a")
		cycle := db.Cycle{Now: s.now, Look: true, Claim: db.Claim{Free: 9, Lease: lease, Limit: map[string]int{"a": 9, "b": 9}}}
		s.wantIDs(ids(must(w.Cycle(s.Context(), cycle))(s).Claimed), all[1:])
	},
	"a pause of all queues includes queues that are created later": func(s *store) {
		s.insert(commandSpec(jobs.Queue("a")))
		w := s.worker()
		s.pause(db.AllQueues)
		s.insert(commandSpec(jobs.Queue("new")))
		s.wantIDs(ids(s.claim(w, 9)), nil)
		s.pause("a")
		s.resume(db.AllQueues) // removes all pauses
		if got := s.pauses(); len(got) != 0 {
			s.Errorf("got %v, want none", got)
		}
		if got := s.claim(w, 9); len(got) != 2 {
			s.Errorf("got %v, want 2 of them", ids(got))
		}
	},
	"running tasks of a paused queue continue, and their retries wait": func(s *store) {
		s.insert(commandSpec(jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{Delay: time.Second})))
		w := s.worker()
		running := s.claimOnly(w)
		s.pause("default")
		if done := s.finish(w, running, failed); done.Change.State != jobs.Retrying {
			s.Errorf("got change state %v, want %v", done.Change.State, jobs.Retrying)
		}

		s.sleep(time.Minute)
		s.wantIDs(ids(s.claim(w, 9)), nil)
		s.wantTask(running.ID, jobs.Pending, jobs.ReasonError)
		s.resume("default")
		s.wantIDs(ids(s.claim(w, 9)), []int64{running.ID})
	},
	"a suspect in a paused queue does not block a busy worker": func(s *store) {
		all := s.insert(commandSpec(jobs.Queue("a"), jobs.MaxLosses(2)), commandSpec(jobs.Queue("b")), commandSpec(jobs.Queue("b")))
		dead, w := s.worker(), s.worker()
		for s.claim(dead, 1)[0].ID != all[0] { // until this worker claims the task of queue a
		}
		if reaped := must(revokeAndReap(s.Context(), w, must(w.Leases(s.Context()))(s), s.now))(s); len(reaped) == 0 ||
			!taskspec.Suspect(s.get(all[0])) {
			s.Fatalf("got reaped tasks %+v, want the first task among them as a suspect", reaped)
		}

		claimIDs := func(idle bool) []int64 {
			return ids(must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Look: true,
				Claim: db.Claim{Free: 1, Idle: idle, Lease: lease}}))(s).Claimed)
		}
		s.pause("a")
		s.sleep(time.Hour)
		s.wantIDs(claimIDs(false), all[1:2])
		s.resume("a")
		s.wantIDs(claimIDs(false), nil) // the suspect has waited for too long, so a busy worker claims nothing
		s.wantIDs(claimIDs(true), all[:1])
	},
	"a second pause keeps the time and user of the first": func(s *store) {
		s.pause("a")
		first := s.now
		s.sleep(time.Hour)
		if err := s.Pause(s.Context(), []string{"a"}, db.Pause{At: s.now, By: "bob", Reason: "disk"}); err != nil {
			s.Fatal(err)
		}
		if got, want := s.pauses(), map[string]db.Pause{"a": {At: first, By: "ann", Reason: "disk"}}; !maps.Equal(got, want) {
			s.Errorf("got %v, want %v", got, want)
		}

		s.resume("a", "b") // to resume queue b, which is not paused, is no error
		if got := s.pauses(); len(got) != 0 {
			s.Errorf("got %v, want none", got)
		}
	},
	"a pause with an end ends by itself": func(s *store) {
		all := s.insert(commandSpec(jobs.Queue("a")), commandSpec(jobs.Queue("b")), commandSpec(jobs.Queue("c")))
		w := s.worker()
		until := s.now.Add(2 * time.Hour)
		s.pauseUntil(until, "a", "c")
		s.pauseUntil(s.now.Add(time.Hour), "c")
		s.pause("b")
		if next := s.look(w); !next.Equal(s.now.Add(time.Hour)) {
			s.Errorf("got next due time %v, want the first end of a pause", next)
		}

		s.wantIDs(ids(s.claim(w, 9)), nil)
		s.sleep(time.Hour)
		s.wantIDs(ids(s.claim(w, 9)), all[2:])
		s.sleep(time.Hour - time.Millisecond)
		s.wantIDs(ids(s.claim(w, 9)), nil)
		if got := s.pauses()["a"].Until; !got.Equal(until) {
			s.Errorf("got end %v, want %v", got, until)
		}

		s.sleep(time.Millisecond)
		if q := must(s.Queues(s.Context(), s.now, s.now))(s)["a"]; len(s.pauses()) != 1 || !q.Pause.At.IsZero() {
			s.Errorf("without a worker, got pauses %v and queue %+v, want a pause of b only", s.pauses(), q)
		}

		s.wantIDs(ids(s.claim(w, 9)), all[:1])
		if next := s.look(w); !next.IsZero() {
			s.Errorf("got next due time %v, want none", next)
		}
		if n := s.number(`SELECT count(*) FROM pauses`); n != 1 {
			s.Errorf("got %d rows of pauses, want 1", n)
		}
	},
	"another pause replaces the end, and resume comes before it": func(s *store) {
		id := s.insert(commandSpec(jobs.Queue("a")))
		w, first := s.worker(), s.now
		s.pauseUntil(s.now.Add(time.Hour), "a", db.AllQueues)
		s.sleep(time.Minute)
		s.pause("a")
		if got := s.pauses()["a"]; !got.At.Equal(first) || !got.Until.IsZero() {
			s.Errorf("got %+v, want a pause since %v without an end", got, first)
		}

		s.sleep(time.Hour)
		s.wantIDs(ids(s.claim(w, 9)), nil)
		s.pauseUntil(s.now.Add(time.Hour), "a")
		s.resume("a")
		s.wantIDs(ids(s.claim(w, 9)), id)

		s.pauseUntil(s.now.Add(time.Second), "a")
		s.sleep(time.Minute)
		s.pause("a") // the earlier pause has ended, so this is another one
		if got := s.pauses()["a"]; !got.At.Equal(s.now) {
			s.Errorf("got a pause since %v, want %v", got.At, s.now)
		}
	},
	"a pause does not last longer because the clock was ahead": func(s *store) {
		id := s.insert(commandSpec(jobs.Queue("a")))
		s.sleep(1000 * time.Hour)
		w := s.worker()
		s.pauseUntil(s.now.Add(time.Hour), "a")
		s.sleep(-1000 * time.Hour)
		must(s.SetBack(s.Context(), s.now))(s)
		must(s.SetBack(s.Context(), s.now))(s)
		if got, want := s.pauses()["a"], (db.Pause{At: s.now, By: "ann", Until: s.now.Add(time.Hour)}); got != want {
			s.Errorf("got %v, want %v", got, want)
		}

		s.wantIDs(ids(s.claim(w, 9)), nil)
		s.sleep(time.Hour)
		s.wantIDs(ids(s.claim(w, 9)), id)
	},
	"queue statistics list a paused queue without tasks": func(s *store) {
		s.pause("idle", db.AllQueues)
		queues := must(s.Queues(s.Context(), s.now, s.now))(s)
		if q := queues["idle"]; len(queues) != 1 || q == nil || !q.Pause.At.Equal(s.now) {
			s.Errorf("got %+v, want queue idle, paused at %v", queues, s.now)
		}

		s.pauseUntil(s.now.Add(time.Hour), "idle")
		if q := must(s.Queues(s.Context(), s.now, s.now))(s)["idle"]; !q.Pause.Until.IsZero() {
			s.Errorf("got end %v, want none: the pause of all queues lasts longer", q.Pause.Until)
		}

		s.pauseUntil(s.now.Add(time.Minute), db.AllQueues)
		if q := must(s.Queues(s.Context(), s.now, s.now))(s)["idle"]; !q.Pause.Until.Equal(s.now.Add(time.Hour)) {
			s.Errorf("got end %v, want the own end of the queue", q.Pause.Until)
		}
	},
}
