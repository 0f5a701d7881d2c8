package dbtest

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

func (m *model) release(r *rapid.T) {
	i, claimed := m.takeClaim(r)
	t := m.owns(claimed)
	if err := m.workers[i].Release(m.Context(), claimsOf(claimed), m.now); err != nil {
		r.Fatal(err)
	}
	if t == nil {
		return
	}
	t.Attempt--
	m.started[t.ID] = slices.ContainsFunc(m.attempts(t.ID), func(db.Attempt) bool { return true })
	if t.CancelRequestedAt.IsZero() {
		m.set(t, jobs.Pending)
	} else {
		t.Reason = jobs.ReasonCancelled
		m.set(t, jobs.Cancelled)
		m.started[t.ID] = true
	}
}

func (m *model) some(r *rapid.T) *jobs.Task {
	if len(m.tasks) == 0 {
		r.Skip("there is no task")
	}
	return m.tasks[rapid.SampledFrom(slices.Sorted(maps.Keys(m.tasks))).Draw(r, "task")]
}

func (m *model) cancel(r *rapid.T) {
	t := m.some(r)
	was := t.State
	moved := m.store.apply(db.Cancel("asked", false, m.now), t.ID)[0]
	switch {
	case was.Finished():
	case was == jobs.Running:
		t.CancelRequestedAt, t.CancelText = m.now, "asked"
	default:
		t.Reason = jobs.ReasonCancelled
		m.set(t, jobs.Cancelled)
	}
	if !moved.Done || moved.State != t.State {
		r.Fatalf("got %+v, want the model's task %+v", moved, *t)
	}
}

func (m *model) retry(r *rapid.T) {
	t := m.some(r)
	due := m.now.Add(time.Duration(rapid.IntRange(0, 1).Draw(r, "in")) * time.Minute)
	moved := m.store.apply(db.Retry(due, m.now, false), t.ID)[0]
	_, taken := m.keys[t.UniqueKey]
	later := due.After(m.now)
	switch {
	case t.State.Finished() && taken:
		if !moved.Taken || moved.Done {
			r.Fatalf("got taken %v, done %v; want true, false", moved.Taken, moved.Done)
		}
	case t.State.Finished():
		to := jobs.Pending
		if later {
			to = jobs.Scheduled
		}
		m.set(t, to)
		t.Attempt, t.Losses, t.RunAt, t.Reason, t.Error = 0, 0, due, "", ""
		t.ExpiresAt, t.CancelRequestedAt, m.started[t.ID] = time.Time{}, time.Time{}, false
		if t.UniqueKey != "" {
			m.keys[t.UniqueKey] = t.ID
		}
	case t.State == jobs.Scheduled || t.State == jobs.Retrying:
		t.RunAt = due
		if !later {
			m.set(t, jobs.Pending)
		}
	}
	if moved.State != t.State {
		r.Fatalf("got %+v, want the model's task %+v", moved, *t)
	}
}

func (m *model) delete(r *rapid.T) {
	t := m.some(r)
	moved := m.store.apply(db.Delete(), t.ID)[0]
	if moved.Done != t.State.Finished() {
		r.Fatalf("got %+v, want the model's task %+v", moved, *t)
	}
	if moved.Done {
		delete(m.tasks, t.ID)
	}
}

func (m *model) sleepSome(r *rapid.T) {
	m.sleep(time.Duration(rapid.IntRange(1, 90).Draw(r, "seconds")) * time.Second)
}
