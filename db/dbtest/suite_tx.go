package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// inTx calls do in a transaction of a caller, which is then committed or rolled
// back.
func (s *store) inTx(commit bool, do func(outer *sql.Tx)) {
	s.Helper()
	outer := must(s.begin())(s)
	defer func() { _ = outer.Rollback() }()

	do(outer)
	if !commit {
		return
	}
	if err := outer.Commit(); err != nil {
		s.Fatal(err)
	}
}

// actions returns all actions, which also run in a transaction of the caller.
func (s *store) actions() map[string]db.Action {
	return map[string]db.Action{
		"cancel":      db.Cancel("by ann", true, s.now),
		"retry":       db.Retry(s.now, s.now, false),
		"retry later": db.Retry(s.now.Add(time.Minute), s.now, false),
		"retry all":   db.Retry(s.now, s.now, true),
		"pause":       db.PauseTask("ann", "lunch", s.now),
		"resume":      db.ResumeTask("ann", s.now),
		"delete":      db.Delete(),
	}
}

// The group transactions tests the calls that write in a transaction of the
// caller.
var transactions = group{
	"an action in a transaction does what the action does alone": func(s *store) {
		for name := range s.actions() {
			for _, state := range taskspec.AllStates() {
				s.exec(`DELETE FROM tasks`)
				first, second := s.inState(state), s.inState(state)
				if name == "resume" {
					s.apply(db.PauseTask("bob", "", s.now), first, second)
				}

				s.sleep(time.Second)
				act := s.actions()[name]

				want := s.apply(act, first, 99)
				before := s.get(second)
				s.inTx(false, func(outer *sql.Tx) { must(s.ApplyTx(s.Context(), outer, []int64{second, 99}, act))(s) })
				if after := s.get(second); !equal(before, after) {
					s.Errorf("%s, %s, rolled back: got %+v, want %+v as before", name, state, after, before)
				}

				var got []jobs.ActionResult
				s.inTx(true, func(outer *sql.Tx) { got = must(s.ApplyTx(s.Context(), outer, []int64{second, 99}, act))(s) })
				want[0].ID = second
				if !slices.Equal(got, want) {
					s.Errorf("%s, %s: got results %+v, want %+v", name, state, got, want)
				}

				one, other := s.get(first), s.get(second)
				other.ID, other.CreatedAt, other.WorkerID = one.ID, one.CreatedAt, one.WorkerID
				if state == jobs.Retrying {
					other.RunAt = one.RunAt // the backoff is random, so the due times of the two tasks differ
				}
				if !equal(one, other) {
					s.Errorf("%s, %s: got task %+v, want %+v", name, state, other, one)
				}
			}
		}
	},
	"a worker sees the request to cancel its task after the commit": func(s *store) {
		w, claimed := s.runningTask()
		s.inTx(true, func(outer *sql.Tx) {
			must(s.ApplyTx(s.Context(), outer, []int64{claimed.ID}, db.Cancel("by ann", false, s.now)))(s)
			if list := must(w.CancelRequests(s.Context()))(s); len(list) != 0 {
				s.Errorf("got requests %+v before the commit, want none", list)
			}
		})
		if list := must(w.CancelRequests(s.Context()))(s); len(list) != 1 || list[0].ID != claimed.ID {
			s.Errorf("got requests %+v, want one for task %d", list, claimed.ID)
		}
	},
	"tasks that a transaction adds are like other tasks": func(s *store) {
		specs := []jobs.Spec{functionSpec("plain"), functionSpec("plain"), commandSpec(jobs.Unique("k")), commandSpec(jobs.Unique("k")),
			functionSpec("lane", jobs.Lane("l")), functionSpec("lane", jobs.Lane("l")),
			jobs.Command(command.Command{Argv: []string{"cat"}, Input: []byte("x")}, jobs.In(time.Minute))}
		last := functionSpec("last")
		last.DependsOnEarlier = []int{0, 2}
		specs = append(specs, last)
		s.inTx(false, func(outer *sql.Tx) { must(s.InsertAllTx(s.Context(), outer, specs, s.now))(s) })
		if n := len(s.list(jobs.Filter{})); n != 0 {
			s.Fatalf("got %d tasks after the rollback, want 0", n)
		}

		var got []jobs.Enqueued
		s.inTx(true, func(outer *sql.Tx) {
			got = must(s.InsertAllTx(s.Context(), outer, specs[:4], s.now))(s)
			got = append(got, must(s.InsertAllTx(s.Context(), outer, specs[4:7], s.now))(s)...)
		})
		if !got[3].Kept || got[3].ID != got[2].ID {
			s.Errorf("got %+v for the second task of a key, want %+v and kept", got[3], got[2])
		}

		for i, want := range []jobs.State{jobs.Pending, jobs.Pending, jobs.Pending, jobs.Pending, jobs.Pending, jobs.Blocked,
			jobs.Scheduled} {
			if task := s.get(got[i].ID); task.State != want || task.Job != specs[i].Job {
				s.Errorf("task %d: got %s of job %s, want %s of job %s", i, task.State, task.Job, want, specs[i].Job)
			}
		}

		s.inTx(true, func(outer *sql.Tx) { got = must(s.InsertAllTx(s.Context(), outer, specs, s.now))(s) })
		if task := s.get(got[7].ID); task.State != jobs.Blocked {
			s.Errorf("got state %s of a task that waits for earlier tasks of its call, want %s", task.State, jobs.Blocked)
		}
	},
	"an enqueue that fails leaves nothing in a transaction that goes on": func(s *store) {
		if s.Server() == nil {
			s.exec(`CREATE TRIGGER refuse BEFORE INSERT ON tasks WHEN NEW.label = 'refused' BEGIN SELECT RAISE(ABORT, 'no'); END`)
		} else {
			s.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$`)
			s.exec(`CREATE TRIGGER refuse BEFORE INSERT ON tasks FOR EACH ROW WHEN (NEW.label = 'refused') EXECUTE FUNCTION refuse()`)
		}

		good, missing, refused := functionSpec("good"), functionSpec("missing"), functionSpec("refused")
		missing.DependsOn, refused.Label = []int64{99}, "refused"
		s.inTx(true, func(outer *sql.Tx) {
			for _, bad := range []jobs.Spec{missing, refused} {
				for _, specs := range [][]jobs.Spec{{good, bad, good}, {bad}} {
					if _, err := s.InsertAllTx(s.Context(), outer, specs, s.now); err == nil {
						s.Errorf("got no error for the task %s among %d, want one", bad.Job, len(specs))
					}
				}
			}
			must(s.InsertAllTx(s.Context(), outer, []jobs.Spec{good, good}, s.now))(s)
		})
		if s.Server() != nil { // the next case has the same tables
			s.exec(`DROP FUNCTION refuse CASCADE`)
		}
		if n := len(s.list(jobs.Filter{})); n != 2 {
			s.Errorf("got %d tasks, want the 2 of the call that succeeded", n)
		}
	},
	"a refused replacement leaves the old task as it was, even if the transaction is committed": func(s *store) {
		key := jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true})
		old := s.insert(job.With("old", key, jobs.DependsOn(s.insert(functionSpec("first"))...)))[0]
		want := s.get(old)
		spec := job.With("new", key, jobs.DependsOn(s.insert(functionSpec("later"))...))
		s.inTx(true, func(outer *sql.Tx) {
			if _, err := s.InsertTx(s.Context(), outer, &spec, s.now); !errors.Is(err, jobs.ErrConflict) {
				s.Errorf("got error %v, want %v", err, jobs.ErrConflict)
			}
		})
		if got := s.get(old); !reflect.DeepEqual(got, want) {
			s.Errorf("got %+v, want the old task %+v", got, want)
		}
	},
	"a completion counts once its transaction is committed, even after a retry": func(s *store) {
		s.insert(functionSpec("f"))
		w := s.worker("f")
		claimed := s.claimOnly(w)
		for _, commit := range []bool{false, true} {
			s.inTx(commit, func(outer *sql.Tx) {
				err := w.FinishTx(s.Context(), outer, db.Finish{Task: claimed, Outcome: s.withTimes(claimed, taskspec.Outcome{})}, s.now)
				if err != nil {
					s.Fatal(err)
				}
			})
			if commit {
				s.apply(db.Retry(s.now, s.now, false), claimed.ID)
			}
			if got := must(w.FinishedTx(s.Context(), claimsOf(claimed)[0], s.now))(s); got != commit {
				s.Errorf("committed %v: got finished %v", commit, got)
			}
		}
	},
	"a transaction reads its own changes": func(s *store) {
		id := s.insert(functionSpec("f"))[0]
		s.inTx(false, func(outer *sql.Tx) {
			read := func(id int64, want jobs.State) {
				task, found, err := s.TaskTx(s.Context(), outer, id)
				if err != nil || found != (want != "") || task.State != want {
					s.Errorf("task %d: got %v, state %q and error %v; want state %q", id, found, task.State, err, want)
				}
			}
			read(id, jobs.Pending)
			must(s.ApplyTx(s.Context(), outer, []int64{id}, db.Cancel("", false, s.now)))(s)
			read(id, jobs.Cancelled)
			must(s.ApplyTx(s.Context(), outer, []int64{id}, db.Retry(s.now, s.now, false)))(s)
			read(id, jobs.Pending)
			read(must(s.InsertAllTx(s.Context(), outer, []jobs.Spec{functionSpec("f")}, s.now))(s)[0].ID, jobs.Pending)
			read(99, "")
		})
	},
	"a transaction that only reads lets others write": func(s *store) {
		outer := must(s.raw.BeginTx(s.Context(), &sql.TxOptions{ReadOnly: true}))(s)
		defer func() { _ = outer.Rollback() }()
		if _, found, err := s.TaskTx(s.Context(), outer, 1); found || err != nil {
			s.Errorf("got a task %v, error %v; want neither", found, err)
		}
		s.insert(functionSpec("f"))
	},
	"a transaction that has read takes the lock of a server for its writes": func(s *store) {
		if s.Server() == nil {
			return // this test is only for servers: in a file, SQLite itself takes the write lock
		}
		s.inTx(true, func(outer *sql.Tx) {
			locks := func() (n int) {
				if err := outer.QueryRow(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()`).Scan(
					&n); err != nil {
					s.Fatal(err)
				}
				return n
			}
			if _, _, err := s.TaskTx(s.Context(), outer, 1); err != nil {
				s.Fatal(err)
			}
			if n := locks(); n != 0 {
				s.Errorf("got %d locks of a transaction that only reads, want 0", n)
			}

			must(s.InsertAllTx(s.Context(), outer, []jobs.Spec{functionSpec("f")}, s.now))(s)
			if n := locks(); n != 1 {
				s.Errorf("got %d locks of a transaction that writes, want 1", n)
			}
		})
	},
	"no call accepts a nil transaction, or a context that has ended": func(s *store) {
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(jobs.ErrShutdown)
		outer := must(s.begin())(s)
		defer func() { _ = outer.Rollback() }()

		for _, with := range []struct {
			ctx   context.Context
			outer *sql.Tx
			want  error
		}{{s.Context(), nil, jobs.ErrInvalid}, {ctx, outer, jobs.ErrShutdown}} {
			_, err := s.InsertAllTx(with.ctx, with.outer, []jobs.Spec{functionSpec("f")}, s.now)
			_, cancelErr := s.ApplyTx(with.ctx, with.outer, []int64{1}, db.Cancel("", false, s.now))
			_, retryErr := s.ApplyTx(with.ctx, with.outer, []int64{1}, db.Retry(s.now, s.now, false))
			_, _, readErr := s.TaskTx(with.ctx, with.outer, 1)
			for name, err := range map[string]error{"add": err, "cancel": cancelErr, "retry": retryErr, "get": readErr} {
				if !errors.Is(err, with.want) {
					s.Errorf("%s: got error %v, want %v", name, err, with.want)
				}
			}
		}
	},
}
