package dbtest

import (
	"slices"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

var claims = group{
	"tasks start by priority, then by age": func(s *store) {
		var specs []jobs.Spec
		for i := range 30 {
			specs = append(specs, commandSpec(jobs.Priority(i%3)))
		}

		all := s.insert(specs...)
		var want []int64
		for _, p := range []int{2, 1, 0} {
			for i, id := range all {
				if i%3 == p {
					want = append(want, id)
				}
			}
		}

		w := s.worker()
		s.wantIDs(append(ids(s.claim(w, 7)), ids(s.claim(w, 100))...), want)
	},
	"a limit or a pause leaves out the tasks that a worker would prefetch": func(s *store) {
		all := s.insert(functionSpec("a"), functionSpec("a"), functionSpec("a"), functionSpec("a"), functionSpec("a"), functionSpec("a"))
		w := s.worker("a")
		s.wantIDs(s.cycle(w, db.Claim{Free: 2, Prefetch: 1}), all[:2])
		s.pause("other")
		s.wantIDs(s.cycle(w, db.Claim{Free: 2, Prefetch: 1}), all[2:3])
		s.wantIDs(s.cycle(w, db.Claim{Free: 2, Prefetch: 2}), nil)
		s.resume("other")
		s.wantIDs(s.cycle(w, db.Claim{Free: 2, Prefetch: 2}), all[3:5])
	},
	"one order covers all jobs of a worker": func(s *store) {
		all := s.insert(functionSpec("a", jobs.Priority(1)), functionSpec("b", jobs.Priority(3)),
			functionSpec("c", jobs.Priority(2)), functionSpec("a", jobs.Priority(3)), functionSpec("b", jobs.Priority(1)))
		s.wantIDs(ids(s.claim(s.worker("a", "b", "c"), 4)), []int64{all[1], all[3], all[2], all[0]})
	},
	"a worker claims tasks of its own jobs only": func(s *store) {
		all := s.insert(functionSpec("a"), functionSpec("b"), commandSpec(), functionSpec("a"), functionSpec("aa"))
		s.wantIDs(ids(s.claim(s.worker("a", "c"), 9)), []int64{all[0], all[3]})
		if got := s.claim(s.worker("nothing"), 9); got != nil {
			s.Errorf("got %v, want nil", got)
		}
	},
	"a claim returns the task as it is stored": func(s *store) {
		s.insert(jobs.Command(command.Command{Argv: []string{"a", "b"}, Path: "/a", Dir: "/", Env: map[string]string{"A": "x"},
			EnvFile: "/e",
			Input:   []byte("i")}, jobs.Label("l"), jobs.Timeout(time.Second), jobs.MaxAttempts(5),
			func(s *jobs.Spec) { s.RetryOn = "3" }, jobs.Unique("key"),
			jobs.ExpiresIn(time.Hour), jobs.Lane("lane")))
		w := s.worker()
		s.sleep(time.Second)
		got, stored := s.claimOnly(w), s.get(1)
		stored.Worker = "" // List sets the name of the worker, but a claim does not
		if s.wantSameTask(got, stored); got.WorkerID != w.ID() || got.State != jobs.Running || got.GenerationID != 2 ||
			got.Attempt != 1 ||
			!got.StartedAt.Equal(s.now) || !got.LeaseExpiresAt.Equal(s.now.Add(lease)) {
			s.Errorf("got %+v; want worker id %v, state %v, generation 2, attempt 1, started at %v, lease expires at %v", got,
				w.ID(), jobs.Running, s.now, s.now.Add(lease))
		}
	},
	"the first claim sets missing max attempts to those of the job": func(s *store) {
		spec := functionSpec("f")
		spec.MaxAttempts = 0
		s.insert(spec)
		if before := s.get(1); before.MaxAttempts != 0 {
			s.Errorf("before the claim: got max attempts %d, want 0", before.MaxAttempts)
		}

		w := s.worker("f")
		got := s.claimOnly(w)
		if got.MaxAttempts != 3 || s.get(1).MaxAttempts != 3 {
			s.Errorf("got max attempts %v in the claim, %v in the database; want 3, 3", got.MaxAttempts, s.get(1).MaxAttempts)
		}

		s.finish(w, got, taskspec.Outcome{Reason: jobs.ReasonShutdown})
		other := must(s.Register(s.Context(), db.WorkerInfo{Lease: lease, StartedAt: s.now},
			[]db.ClaimJob{{Job: "f", MaxAttempts: 9}}))(s)
		if got := s.claimOnly(other); got.MaxAttempts != 3 || got.Attempt != 1 {
			s.Errorf("got max attempts %v, attempt %v; want 3, 1", got.MaxAttempts, got.Attempt)
		}
	},
	"a claim clears the outcome of the last attempt": func(s *store) {
		s.insert(commandSpec(jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{})))
		w := s.worker()
		first := s.claimOnly(w)
		code := 3
		s.finish(w, first, taskspec.Outcome{Reason: jobs.ReasonExit, Error: "exit status 3", ExitCode: &code, OutputBytes: 9,
			OutputTruncated: true, Result: []byte("1")})
		second, stored := s.claimOnly(w), s.get(1)
		if stored.Reason != "" || stored.Error != "" || stored.ExitCode != nil || stored.OutputBytes != 0 ||
			stored.OutputTruncated || stored.Result != nil || stored.Duration != 0 {
			s.Errorf("got %+v; want reason none, error none, exit code nil, output bytes 0, output truncated false, result nil, duration 0",
				stored)
		}
		// The state has changed to retrying, pending and running, and each
		// change adds 1 to the generation.
		if second.Attempt != 2 || second.GenerationID != first.GenerationID+3 {
			s.Errorf("got second attempt %v, second generation %v; want 2, %v", second.Attempt, second.GenerationID,
				first.GenerationID+3)
		}
	},
	"queues take turns regardless of their length": func(s *store) {
		var specs []jobs.Spec
		for range 40 {
			specs = append(specs, commandSpec(jobs.Queue("flood"), jobs.Priority(9)))
		}

		specs = append(specs, commandSpec(jobs.Queue("a")), commandSpec(jobs.Queue("b")), commandSpec(jobs.Queue("z")))
		s.insert(specs...)
		w := s.worker()
		var served []string
		for range 8 {
			for _, t := range s.claim(w, 1) {
				served = append(served, t.Queue)
			}
		}

		for _, queue := range []string{"a", "b", "z"} {
			if i := slices.Index(served, queue); i < 0 || i > 3 {
				s.Errorf("got queues %v, want %s among the first four", served, queue)
			}
		}
	},
	"queues share free slots, and other queues get what one cannot use": func(s *store) {
		var specs []jobs.Spec
		for _, queue := range []string{"a", "b", "c"} {
			for range 20 {
				specs = append(specs, commandSpec(jobs.Queue(queue)))
			}
		}

		specs = append(specs, commandSpec(jobs.Queue("few")))
		s.insert(specs...)
		count := map[string]int{}
		for _, t := range s.claim(s.worker(), 16) {
			count[t.Queue]++
		}

		if count["few"] != 1 || count["a"] < 4 || count["b"] < 4 || count["c"] < 4 || count["a"]+count["b"]+count["c"] != 15 {
			s.Errorf("got claims per queue %v; want 1 of queue few, and 15 of a, b and c with at least 4 of each", count)
		}
	},
	"a claim respects the limit of each queue and skips queues without a limit": func(s *store) {
		for _, queue := range []string{"a", "b", "c"} {
			s.insert(commandSpec(jobs.Queue(queue)), commandSpec(jobs.Queue(queue)), commandSpec(jobs.Queue(queue)))
		}

		w := s.worker()
		claimed := func(limit map[string]int) map[string]int {
			count := map[string]int{}
			for _, t := range must(w.Cycle(s.Context(), db.Cycle{Now: s.now,
				Claim: db.Claim{Free: 8, Lease: lease, Limit: limit}}))(s).Claimed {
				count[t.Queue]++
			}
			return count
		}
		if got := claimed(map[string]int{"a": 2, "b": 0, "nobody": 5}); len(got) != 1 || got["a"] != 2 {
			s.Errorf("got claims per queue %v, want 2 of queue a and no others", got)
		}
		if got := claimed(map[string]int{"b": -1}); len(got) != 0 {
			s.Errorf("got %v, want none", got)
		}
		if got := claimed(map[string]int{}); len(got) != 0 {
			s.Errorf("got %v, want none", got)
		}
		if got := claimed(nil); got["a"] != 1 || got["b"]+got["c"] != 6 {
			s.Errorf("got claims per queue %v, want 1 of queue a and 6 of b and c", got)
		}
	},
	"only the worker that reserved a task claims it": func(s *store) {
		mine, other := s.worker(), s.worker()
		spec := commandSpec(jobs.MaxAttempts(3), jobs.WithBackoff(jobs.Backoff{Delay: time.Second}))
		id := must(s.InsertReserved(s.Context(), mine, &spec, true, s.now))(s).ID
		if got := s.get(id).InputBytes; got != -1 {
			s.Errorf("got %d bytes of input, want -1 for one that isn't stored", got)
		}

		last := s.insert(commandSpec())[0]
		s.wantIDs(ids(s.claim(other, 9)), []int64{last})
		s.wantIDs(s.cycle(other, db.Claim{Free: 1, Only: id}), nil)
		s.wantIDs(s.cycle(mine, db.Claim{Free: 1, Only: id}), []int64{id})

		code := 3 // the next attempt is reserved too
		failed := taskspec.Outcome{Reason: jobs.ReasonExit, ExitCode: &code}
		first := s.get(id)
		must(mine.Cycle(s.Context(), db.Cycle{Now: s.now, Finish: []db.Finish{{Task: first, Outcome: s.withTimes(first, failed)}},
			Claim: db.Claim{Free: 1, Only: id, Lease: lease}}))(s)
		s.sleep(time.Minute)
		s.wantIDs(ids(s.claim(other, 9)), nil)
		if got := s.get(id); got.State != jobs.Pending || got.Attempt != 1 {
			s.Errorf("got state %s and attempt %d, want pending and 1", got.State, got.Attempt)
		}
		if err := mine.End(s.Context(), s.now); err != nil {
			s.Fatal(err)
		}

		s.wantIDs(ids(s.claim(other, 9)), []int64{id})
	},
	"a claim without a free slot or without jobs is empty": func(s *store) {
		s.insert(commandSpec())
		none := must(s.Register(s.Context(), db.WorkerInfo{Lease: lease, StartedAt: s.now}, nil))(s)
		if got := s.claim(none, 1); got != nil {
			s.Errorf("got %v, want nil", got)
		}
		if got := s.claim(s.worker(), 0); got != nil {
			s.Errorf("got %v, want nil", got)
		}
	},
	"eight handles claim each task once": func(s *store) { s.claimsBeside(8) },
	"eight handles that have batches, too, claim each task once": func(s *store) {
		s.claimsBeside(8, db.ClaimJob{Job: "many", MaxAttempts: 1, Batch: 2})
	},
}

// claimsBeside lets handles empty three queues at the same time. Their workers
// run commands and other jobs.
func (s *store) claimsBeside(handles int, others ...db.ClaimJob) {
	s.Helper()
	most := testkit.Size(1000, 4000)
	specs := make([]jobs.Spec, most)
	for i := range specs {
		specs[i] = commandSpec(jobs.Queue([]string{"a", "b", "c"}[i%3]), jobs.Priority(i%5))
	}

	s.insert(specs...)
	var mu sync.Mutex
	owner := map[int64]int{}
	var all sync.WaitGroup
	for i := range handles {
		d := s.open(db.Options{Normal: true, BusyTimeout: time.Minute})
		w := must(d.Register(s.Context(), db.WorkerInfo{Lease: lease, StartedAt: s.now},
			append(others, db.ClaimJob{Job: command.Job, MaxAttempts: 1})))(s)
		all.Go(func() {
			var done []db.Finish
			for {
				result, err := w.Cycle(s.Context(), db.Cycle{Now: s.now, Look: true, Finish: done,
					Claim: db.Claim{Free: 1 + i*3, Lease: lease}})
				if err != nil {
					s.Error(err)
					return
				}

				done = nil
				for _, t := range result.Claimed {
					done = append(done, db.Finish{Task: t, Outcome: s.withTimes(t, taskspec.Outcome{})})
				}

				mu.Lock()
				for _, t := range result.Claimed {
					owner[t.ID]++
				}

				mu.Unlock()
				if len(result.Claimed) == 0 {
					return
				}
			}
		})
	}

	all.Wait()
	for id, times := range owner {
		if times != 1 {
			s.Errorf("task %d: got %d claims, want 1", id, times)
		}
	}

	if len(owner) != most || s.counted()[jobs.Completed] != most {
		s.Errorf("got %d claimed tasks, counted %v; want %d of both", len(owner), s.counted(), most)
	}
}
