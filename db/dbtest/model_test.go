package dbtest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// TestModel makes random calls of a store and compares each result with a
// model. The model keeps the expected tasks in maps. At the end the test checks
// the history of all changes. The model uses taskspec.Next, as the store does,
// so the test does not check the decisions themselves. It checks that the store
// applies each decision to the right task only, even if the call comes late.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := &store{T: t, DB: Open(t), now: start}
		s.record()
		if rapid.Bool().Draw(r, "cursor") {
			s.makeCursor(testCursor)
		}
		defer s.DB.Close()
		defer s.raw.Close()
		m := &model{store: s, tasks: map[int64]*jobs.Task{}, keys: map[string]int64{}, started: map[int64]bool{}}
		for range 3 {
			m.workers = append(m.workers, s.worker("a", "b"))
		}
		m.held = make([][]jobs.Task, len(m.workers))
		r.Repeat(map[string]func(*rapid.T){"": m.compare, "insert": m.insertSome, "cycle": m.cycle, "finish": m.finishSome,
			"old finish": m.oldFinish,
			"beat":       m.beatSome, "reap": m.reapSome, "revoke": m.revokeSome, "cancel": m.cancel, "retry": m.retry,
			"delete": m.delete, "release": m.release, "sleep": m.sleepSome})
		for _, problem := range violations(s.history()) {
			r.Error(problem)
		}
		if err := checkEnds(s, s.history()); err != nil {
			r.Error(err)
		}
	})
}

type model struct {
	*store
	workers []*db.Worker
	tasks   map[int64]*jobs.Task // expected tasks
	keys    map[string]int64     // unfinished tasks by unique key
	started map[int64]bool       // tasks that have started
	held    [][]jobs.Task        // claims that each worker believes it has; some of them may already be lost
	old     []jobs.Task          // finished claims
}

// set changes the state of a task in the model.
func (m *model) set(t *jobs.Task, to jobs.State) {
	if t.State != to {
		t.State = to
		t.GenerationID++
	}
	if to.Finished() && t.UniqueKey != "" && m.keys[t.UniqueKey] == t.ID {
		delete(m.keys, t.UniqueKey)
	}
}

// apply applies a decision of taskspec.Next to a task in the model.
func (m *model) apply(t *jobs.Task, c taskspec.Change) {
	t.Attempt, t.Losses, t.Reason, t.Error = c.Attempt, c.Losses, c.Reason, c.Error
	if !c.RunAt.IsZero() {
		t.RunAt = c.RunAt.Truncate(time.Millisecond) // the database stores milliseconds
	}
	m.set(t, c.State)
}

func (m *model) insertSome(r *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(r, "n")
	specs := make([]jobs.Spec, n)
	for i := range specs {
		options := []jobs.Option{jobs.Priority(rapid.IntRange(0, 3).Draw(r, "priority")),
			jobs.Queue(rapid.SampledFrom([]string{"p", "q"}).Draw(r, "queue")),
			jobs.MaxAttempts(rapid.IntRange(1, 3).Draw(r, "max_attempts")), jobs.MaxLosses(rapid.IntRange(0, 2).Draw(r, "max_losses")),
			jobs.In(time.Duration(rapid.IntRange(0, 2).Draw(r, "in")) * time.Minute), jobs.WithBackoff(jobs.Backoff{Delay: time.Minute}),
			jobs.ExpiresIn(time.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(r, "expires")) * time.Minute),
			jobs.Unique(rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(r, "key"))}
		specs[i] = functionSpec(rapid.SampledFrom([]string{"a", "b", "other"}).Draw(r, "job"), options...)
	}
	for i, added := range must(m.Insert(m.Context(), slices.Clone(specs), m.now))(m) {
		spec := specs[i]
		taskspec.ResolveKey(&spec) // the key belongs to its job
		if id, taken := m.keys[spec.UniqueKey]; taken != added.Kept || taken && id != added.ID {
			r.Fatalf("key %q: got %+v, want task %d, kept %v", spec.UniqueKey, added, id, taken)
		}
		if added.Kept {
			continue
		}
		task := taskspec.NewTask(&spec, m.now)
		task.ID = added.ID
		if m.tasks[task.ID] != nil || len(m.tasks) > 0 && task.ID <= slices.Max(slices.Collect(maps.Keys(m.tasks))) {
			r.Fatalf("got id %d, want one above all ids so far", task.ID)
		}
		m.tasks[task.ID] = &task
		if spec.UniqueKey != "" {
			m.keys[spec.UniqueKey] = task.ID
		}
	}
}

// promoteDue makes due tasks in the model pending and cancels expired ones.
func (m *model) promoteDue() {
	for id, t := range m.tasks {
		switch {
		case !t.State.Finished() && !t.ExpiresAt.IsZero() && !m.started[id] && !t.ExpiresAt.After(m.now):
			t.Reason = jobs.ReasonExpired
			m.set(t, jobs.Cancelled)
		case (t.State == jobs.Scheduled || t.State == jobs.Retrying) && !t.RunAt.After(m.now):
			m.set(t, jobs.Pending)
		}
	}
}

func (m *model) cycle(r *rapid.T) {
	i := rapid.IntRange(0, len(m.workers)-1).Draw(r, "worker")
	free := rapid.IntRange(0, 5).Draw(r, "free")
	idle := rapid.Bool().Draw(r, "idle")
	m.promoteDue()
	claimed := must(m.workers[i].Cycle(m.Context(), db.Cycle{Now: m.now, Look: true,
		Claim: db.Claim{Free: free, Lease: lease, Idle: idle}}))(m).Claimed
	waiting := map[string][]*jobs.Task{}
	n, suspects := 0, 0
	for _, t := range m.tasks {
		if t.State == jobs.Pending && t.Job != "other" && taskspec.Suspect(*t) {
			suspects++
		}
	}
	alone := idle && suspects > 0 // an idle worker claims one suspect and no other task
	if suspects > 0 && !idle && len(claimed) == 0 {
		return // a busy worker claims nothing if a suspect has waited long enough
	}
	for _, t := range m.tasks {
		if t.State == jobs.Pending && t.Job != "other" && taskspec.Suspect(*t) == alone {
			waiting[t.Queue] = append(waiting[t.Queue], t)
			n++
		}
	}
	if alone {
		n = 1
	}
	if len(claimed) != min(free, n) {
		r.Fatalf("got %d claims for %d slots, want %d", len(claimed), free, min(free, n))
	}
	for _, list := range waiting {
		slices.SortFunc(list, func(a, b *jobs.Task) int {
			if a.Priority != b.Priority {
				return b.Priority - a.Priority
			}
			return int(a.ID - b.ID)
		})
	}
	for _, c := range claimed { // each claimed task must be the first remaining task of its queue
		list := waiting[c.Queue]
		if len(list) == 0 || list[0].ID != c.ID {
			r.Fatalf("got a claim of task %d in queue %s, want the first of %v", c.ID, c.Queue, list)
		}
		t := list[0]
		waiting[c.Queue] = list[1:]
		m.set(t, jobs.Running)
		t.Attempt++
		t.Reason, t.Error = "", ""
		t.WorkerID, m.started[t.ID] = m.workers[i].ID(), true
		if c.GenerationID != t.GenerationID || c.Attempt != t.Attempt {
			r.Fatalf("got claim %+v, want the model's task %+v", c, *t)
		}
	}
	m.held[i] = append(m.held[i], claimed...)
}

// takeClaim chooses one of the claims that a worker believes it has, and
// removes it from the list of the worker.
func (m *model) takeClaim(r *rapid.T) (worker int, claimed jobs.Task) {
	i := rapid.IntRange(0, len(m.workers)-1).Draw(r, "worker")
	if len(m.held[i]) == 0 {
		r.Skip("the worker has no task")
	}
	j := rapid.IntRange(0, len(m.held[i])-1).Draw(r, "claim")
	claimed = m.held[i][j]
	m.held[i] = slices.Delete(m.held[i], j, j+1)
	m.old = append(m.old, claimed)
	return i, claimed
}

// owns returns the task of the model for a claim. It returns nil if the worker
// has lost the claim.
func (m *model) owns(claimed jobs.Task) *jobs.Task {
	t := m.tasks[claimed.ID]
	if t == nil || t.State != jobs.Running || t.GenerationID != claimed.GenerationID {
		return nil
	}
	return t
}

func anyOutcome(r *rapid.T) taskspec.Outcome {
	return rapid.SampledFrom([]taskspec.Outcome{{}, failed, {Reason: jobs.ReasonTimeout}, {Reason: jobs.ReasonShutdown},
		{Reason: jobs.ReasonLost},
		taskspec.OutcomeOf(nil, jobs.Snooze(time.Minute)), taskspec.OutcomeOf(nil, jobs.Cancel(nil)),
		taskspec.OutcomeOf(nil, jobs.RetryIn(time.Minute, nil))}).Draw(r, "outcome")
}

func (m *model) finishSome(r *rapid.T) {
	i, claimed := m.takeClaim(r)
	m.sleep(time.Millisecond) // another worker may record the same loss in the same millisecond; the store then counts it once
	o := anyOutcome(r)
	t := m.owns(claimed)
	done := m.finish(m.workers[i], claimed, o)
	if done.Fenced != (t == nil) {
		r.Fatalf("got fenced %v, want %v", done.Fenced, (t == nil))
	}
	if t != nil {
		m.apply(t, taskspec.Next(*t, o, m.now))
		if done.Change.State != t.State {
			r.Fatalf("got %+v, want the model's task %+v", done, *t)
		}
	}
}

// oldFinish finishes a claim that is already finished, with another outcome and
// possibly by another worker.
func (m *model) oldFinish(r *rapid.T) {
	if len(m.old) == 0 {
		r.Skip("no claim has ended")
	}
	m.sleep(time.Second)
	claimed := rapid.SampledFrom(m.old).Draw(r, "claim")
	o := anyOutcome(r)
	if done := m.finish(rapid.SampledFrom(m.workers).Draw(r, "by"), claimed, o); !done.Fenced {
		r.Fatal("an old finish: got it accepted, want it rejected")
	}
}

func (m *model) beatSome(r *rapid.T) {
	i := rapid.IntRange(0, len(m.workers)-1).Draw(r, "worker")
	asked := append(slices.Clone(m.held[i]), m.old...)
	var want []db.ClaimID
	for _, claimed := range m.held[i] {
		if m.owns(claimed) != nil {
			want = append(want, claimsOf(claimed)...)
		}
	}
	slices.SortFunc(want, func(a, b db.ClaimID) int { return int(a.ID - b.ID) })
	if owned := m.beat(m.workers[i], claimsOf(asked...)...); !slices.Equal(owned, want) {
		r.Fatalf("got owned claims %v, want %v", owned, want)
	}
}

func (m *model) reapSome(r *rapid.T) {
	i := rapid.IntRange(0, len(m.workers)-1).Draw(r, "reaper")
	seen := m.leases(m.workers[i])
	slices.SortFunc(seen, func(a, b db.Lease) int { return int(a.ID - b.ID) })
	seen = seen[:rapid.IntRange(0, len(seen)).Draw(r, "n")]
	if n := m.reap(m.workers[i], append(seen, seen...)...); n != len(seen) {
		r.Fatalf("got %d reaped tasks, want %d", n, len(seen))
	}
	for _, l := range seen {
		t := m.tasks[l.ID]
		if !l.Revoked() {
			t.GenerationID++
		}
		m.apply(t, taskspec.Next(*t, taskspec.Outcome{Reason: jobs.ReasonLost}, m.now))
	}
}

// revokeSome revokes claims but does not record their loss, like a worker that
// dies between these two steps.
func (m *model) revokeSome(r *rapid.T) {
	seen := m.leases(m.workers[rapid.IntRange(0, len(m.workers)-1).Draw(r, "reaper")])
	slices.SortFunc(seen, func(a, b db.Lease) int { return int(a.ID - b.ID) })
	seen = seen[:rapid.IntRange(0, len(seen)).Draw(r, "n")]
	revoked := must(m.workers[0].Revoke(m.Context(), append(seen, seen...)))(m)
	for _, l := range seen {
		if !l.Revoked() {
			m.tasks[l.ID].GenerationID++
		}
		if !slices.ContainsFunc(revoked, func(now db.Lease) bool { return now.Revoked() && now.Claimed() == l.Claimed() }) {
			r.Fatalf("got revoked claims %+v, want %+v among them", revoked, l)
		}
	}
}

// compare compares all tasks of the store with the model.
func (m *model) compare(r *rapid.T) {
	stored := must(m.List(m.Context(), jobs.Filter{}))(m)
	if len(stored) != len(m.tasks) {
		r.Fatalf("got %d tasks, want %d as in the model", len(stored), len(m.tasks))
	}
	for _, got := range stored {
		want := m.tasks[got.ID]
		a := fmt.Sprint(got.State, got.GenerationID, got.Attempt, got.Losses, got.Reason, got.UniqueKey, got.FinishedAt.IsZero(),
			got.CancelRequestedAt.IsZero())
		b := fmt.Sprint(want.State, want.GenerationID, want.Attempt, want.Losses, want.Reason, want.UniqueKey,
			!want.State.Finished(), want.CancelRequestedAt.IsZero())
		if a != b || (got.State == jobs.Scheduled || got.State == jobs.Retrying) && !got.RunAt.Equal(want.RunAt) {
			r.Fatalf("task %d: got %s, due %v; want %s, due %v, as in the model", got.ID, a, got.RunAt, b, want.RunAt)
		}
	}
}
