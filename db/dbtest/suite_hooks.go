package dbtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// hooks returns the hooks in the database as "event of task: command", in the
// order of their ids.
func (s *store) hooks() (list []string) {
	s.Helper()
	for _, t := range must(s.List(s.Context(), jobs.Filter{}))(s) {
		if t.Event != "" {
			argv := must(taskspec.Argv(t.Args))(s)
			list = append(list, fmt.Sprintf("%s of %s: %s", t.Event, t.Env["RUNNER_EVENT_TASK"], argv[len(argv)-1]))
		}
	}

	slices.Sort(list)
	return list
}

func (s *store) wantHooks(want ...string) {
	s.Helper()
	if got := s.hooks(); !slices.Equal(got, want) {
		s.Errorf("got hooks %q, want %q", got, want)
	}
}

var allHooks = command.Hooks{OnFailure: "bad", OnSuccess: "good", OnOutput: "said"}

var hookTests = group{
	"the end of a task adds its hooks in the same transaction": func(s *store) {
		code := 3
		s.insert(commandSpec(func(s *jobs.Spec) { s.Hooks = allHooks }, jobs.Queue("mail"), jobs.Priority(7), jobs.Label("night"),
			jobs.Metadata(map[string]string{"tenant": "acme"})))
		w := s.worker()
		task := s.claimOnly(w)
		s.write(w, task, db.Output{Add: []db.Chunk{chunk(1, "stdout", strings.Repeat("line\n", 60))}})
		done := must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Claim: db.Claim{Free: 3, Lease: lease}, Finish: []db.Finish{{Task: task,
			Outcome: s.withTimes(task, taskspec.Outcome{Reason: jobs.ReasonExit, Error: "exit status 3", ExitCode: &code,
				OutputBytes: 304}), Output: db.Output{Add: []db.Chunk{chunk(2, "stderr", "end\x00")}}}}}))(s)
		s.wantHooks("failed of 1: bad", "output of 1: said")
		if len(done.Claimed) != 2 {
			s.Fatalf("got %d claimed tasks, want the 2 hooks", len(done.Claimed))
		}

		hook := s.get(2)
		if hook.Queue != "mail" || hook.Priority != 1000 || hook.Label != "on-failure of task 1" || hook.MaxAttempts != 10 ||
			hook.Timeout != time.Minute || hook.Schedule != "" {
			s.Errorf("got hook %+v; want queue mail, priority 1000, label \"on-failure of task 1\", 10 attempts of 1m and no schedule",
				hook)
		}

		for name, want := range map[string]string{"RUNNER_EVENT": "failed", "RUNNER_EVENT_LABEL": "night", "RUNNER_EVENT_EXIT_CODE": "3",
			"RUNNER_EVENT_COMMAND": "true", "RUNNER_EVENT_TITLE": "task 1 (night) failed: exit status 3",
			"RUNNER_EVENT_STATE": "failed", "RUNNER_EVENT_REASON": "exit", "RUNNER_EVENT_METADATA": `{"tenant":"acme"}`} {
			if got := hook.Env[name]; got != want {
				s.Errorf("%s: got %q, want %q", name, got, want)
			}
		}

		if got, want := string(must(s.Input(s.Context(), 2))(s)), strings.Repeat("line\n", 49)+"end\x00"; got != want {
			s.Errorf("got input %q, want %q", got, want)
		}
		if got := hook.Env["RUNNER_EVENT_OUTPUT"]; !strings.HasSuffix(got, "line\nend\ufffd") {
			s.Errorf("got RUNNER_EVENT_OUTPUT %q, want one that ends with line\\nend\ufffd", got)
		}
	},
	"many ends in one transaction add the hooks of each": func(s *store) {
		specs := make([]jobs.Spec, 20)
		for i := range specs {
			if specs[i] = commandSpec(); i%10 == 3 {
				specs[i] = commandSpec(func(s *jobs.Spec) { s.Hooks = allHooks })
			}
		}

		s.insert(specs...)
		w := s.worker()
		var list []db.Finish
		for _, task := range s.claim(w, 20) {
			list = append(list, db.Finish{Task: task, Outcome: s.withTimes(task, taskspec.Outcome{})})
		}

		s.finishAll(w, list...)
		s.finishAll(w, list...) // writing the same end again must not enqueue the hook a second time
		s.wantHooks("completed of 14: good", "completed of 4: good")
	},
	"the hooks of the worker are for tasks without their own": func(s *store) {
		s.insert(commandSpec(func(s *jobs.Spec) { s.Hooks = command.Hooks{OnSuccess: "own"} }), commandSpec(),
			functionSpec("f", jobs.MaxAttempts(1)))
		w := must(s.Register(s.Context(), db.WorkerInfo{Name: "w", Slots: 4, Lease: lease, StartedAt: s.now},
			[]db.ClaimJob{{Job: command.Job, MaxAttempts: 1}, {Job: "f", MaxAttempts: 1}}))(s)
		w.SetHooks(allHooks)
		claimed := s.claim(w, 3)
		s.finish(w, claimed[0], taskspec.Outcome{})
		s.finish(w, claimed[1], taskspec.Outcome{})
		s.finish(w, claimed[2], failed)
		s.wantHooks("completed of 1: own", "completed of 2: good", "failed of 3: bad")
	},
	"the end of a hook, a cancelled task and a retry run no hooks": func(s *store) {
		s.insert(commandSpec(func(s *jobs.Spec) { s.Hooks = allHooks }),
			commandSpec(func(s *jobs.Spec) { s.Hooks = allHooks }, jobs.MaxAttempts(2)),
			commandSpec(func(s *jobs.Spec) { s.Hooks = allHooks }))
		w := must(s.Register(s.Context(), db.WorkerInfo{Name: "w", Slots: 4, Lease: lease, StartedAt: s.now},
			[]db.ClaimJob{{Job: command.Job, MaxAttempts: 1}}))(s)
		w.SetHooks(allHooks)
		claimed := s.claim(w, 3)
		s.finish(w, claimed[0], failed)
		s.finish(w, claimed[1], failed)
		s.finish(w, claimed[2], taskspec.Outcome{Reason: jobs.ReasonCancelled, Error: "cancelled"})
		hook := s.claimOnly(w)
		s.finish(w, hook, taskspec.Outcome{})
		s.wantHooks("failed of 1: bad")
	},
	"a task that expires or loses its dependency is cancelled, so it runs no hooks": func(s *store) {
		first := s.insert(commandSpec(jobs.MaxAttempts(1)))[0]
		after := s.insert(commandSpec(jobs.DependsOn(first), func(s *jobs.Spec) { s.Hooks = allHooks }))[0]
		expires := s.insert(commandSpec(jobs.In(time.Hour), jobs.ExpiresIn(time.Minute), func(s *jobs.Spec) { s.Hooks = allHooks }))[0]
		w := must(s.Register(s.Context(), db.WorkerInfo{Name: "w", Slots: 4, Lease: lease, StartedAt: s.now},
			[]db.ClaimJob{{Job: command.Job, MaxAttempts: 1}}))(s)
		w.SetHooks(command.Hooks{OnSuccess: "good"})
		s.finish(w, s.claimOnly(w), failed)
		s.sleep(2 * time.Hour)
		s.claim(w, 1)
		s.wantTask(after, jobs.Cancelled, jobs.ReasonDependency)
		s.wantTask(expires, jobs.Cancelled, jobs.ReasonExpired)
		s.wantHooks()
	},
	"a lost task runs the hooks of the worker that records the loss": func(s *store) {
		s.insert(commandSpec(jobs.MaxLosses(0), func(s *jobs.Spec) { s.Hooks = allHooks }))
		w := s.worker()
		task := s.claimOnly(w)
		s.write(w, task, db.Output{Add: []db.Chunk{chunk(1, "stdout", "last words\n")}})
		reaper := s.worker()
		if reaped := must(reaper.ReapDead(s.Context(), w.Number(), s.now))(s); len(reaped) != 1 {
			s.Fatalf("got %d reaped tasks, want 1", len(reaped))
		}

		s.wantHooks("failed of 1: bad")
		if got, want := s.get(2).Env["RUNNER_EVENT_OUTPUT"], "last words"; got != want {
			s.Errorf("got RUNNER_EVENT_OUTPUT %q, want %q", got, want)
		}
	},
	"the first success after a failure of the same subject runs on-recovery": func(s *store) {
		w := s.worker()
		run := func(key string, o taskspec.Outcome) {
			s.insert(commandSpec(jobs.Unique(key), jobs.MaxAttempts(1), jobs.Priority(9999),
				func(s *jobs.Spec) { s.Hooks = command.Hooks{OnRecovery: "well"} }))
			s.finish(w, s.claim(w, 1)[0], o)
		}
		run("a", taskspec.Outcome{})
		run("a", failed)
		run("a", failed)
		run("b", taskspec.Outcome{})
		s.wantHooks()
		run("a", taskspec.Outcome{})
		s.wantHooks("recovered of 5: well")
		run("a", taskspec.Outcome{})
		s.wantHooks("recovered of 5: well")
	},
}
