package dbtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// try inserts a task that runs the function f, at the current time of the
// store.
func (s *store) try(options ...jobs.Option) jobs.Enqueued {
	s.Helper()
	return must(s.Insert(s.Context(), []jobs.Spec{functionSpec("f", options...)}, s.now))(s)[0]
}

// wantKept checks that an insert with these options adds nothing, because task
// id holds the key.
func (s *store) wantKept(id int64, options ...jobs.Option) {
	s.Helper()
	if got, want := s.try(options...), (jobs.Enqueued{ID: id, Kept: true}); got != want {
		s.Errorf("got %+v, want %+v", got, want)
	}
}

// wantAdded checks that an insert with these options adds a task, and returns
// its id.
func (s *store) wantAdded(options ...jobs.Option) int64 {
	s.Helper()
	got := s.try(options...)
	if got.Kept || got.Replaced {
		s.Errorf("got %+v, want a new task", got)
	}
	return got.ID
}

// keyRows returns the number of rows in unique_keys.
func (s *store) keyRows() int64 { return s.number(`SELECT count(*) FROM unique_keys`) }

// pruneKeys deletes the unique keys that no task holds at the time of the
// test's clock.
func (s *store) pruneKeys() {
	s.Helper()
	for must(s.PruneKeys(s.Context(), s.now))(s) {
	}
}

var uniques = group{
	"For holds the key after the end and after the deletion of the task": func(s *store) {
		id := s.inStateOf("f", jobs.Completed, jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour}))
		s.sleep(time.Hour - time.Millisecond)
		s.wantKept(id, jobs.Unique("k"))
		s.wantKept(id, jobs.UniqueWith("k", jobs.UniqueOptions{For: 2 * time.Hour}))
		s.pruneAll(db.Prune{Before: s.now})
		s.pruneKeys()
		if got := s.get(id); got.ID != 0 {
			s.Fatalf("got task %+v, want none", got)
		}

		s.wantKept(id, jobs.Unique("k"))
		s.wantKept(id, jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true}))
		s.wantAdded(jobs.Unique("other"))
		s.sleep(time.Millisecond)
		s.wantAdded(jobs.Unique("k"))
	},
	"For does not free the key of an unfinished task": func(s *store) {
		id := s.wantAdded(jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour}))
		s.sleep(2 * time.Hour)
		s.pruneKeys()
		if n := s.keyRows(); n != 0 {
			s.Errorf("got %d rows of keys, want none", n)
		}
		s.wantKept(id, jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour}))
	},
	"UntilStart takes the key from a running task": func(s *store) {
		w, again := s.worker("f"), jobs.UniqueWith("k", jobs.UniqueOptions{UntilStart: true})
		add := func() jobs.Enqueued {
			s.Helper()
			return must(s.Insert(s.Context(), []jobs.Spec{functionSpec("f", again, jobs.MaxAttempts(2))}, s.now))(s)[0]
		}
		first := add().ID
		s.wantKept(first, again) // it has not started
		running := s.claimOnly(w)
		s.wantKept(first, jobs.Unique("k")) // a task without this mode respects the key
		second := add()
		if second.Kept || second.ID == first {
			s.Errorf("got %+v, want a new task", second)
		}

		s.wantKept(second.ID, again)
		s.wantKept(second.ID, jobs.Unique("k"))
		s.finish(w, running, taskspec.Outcome{Reason: jobs.ReasonError, Error: "x"})
		s.wantTask(first, jobs.Retrying, jobs.ReasonError)
		s.finish(w, s.claimOnly(w), taskspec.Outcome{Reason: jobs.ReasonError, Error: "x"})
		s.wantTask(second.ID, jobs.Retrying, jobs.ReasonError)
		s.wantKept(second.ID, again) // a task that waits for its next attempt keeps its key

		held := s.inStateOf("f", jobs.Running, jobs.UniqueWith("for", jobs.UniqueOptions{For: time.Hour}))
		s.wantKept(held, jobs.UniqueWith("for", jobs.UniqueOptions{UntilStart: true}))
		s.sleep(time.Hour)
		s.wantAdded(jobs.UniqueWith("for", jobs.UniqueOptions{UntilStart: true}))
	},
	"States hold the key in the named states only": func(s *store) {
		for _, state := range []jobs.State{jobs.Completed, jobs.Failed, jobs.Cancelled} {
			for _, held := range []jobs.State{jobs.Completed, jobs.Failed, jobs.Cancelled} {
				options := []jobs.Option{jobs.UniqueWith(fmt.Sprint(state, held), jobs.UniqueOptions{States: []jobs.State{held}})}
				id := s.inStateOf("f", state, options...)
				if held == state {
					s.wantKept(id, options...)
				} else {
					s.apply(db.Cancel("", false, s.now), s.wantAdded(options...))
				}
			}
		}
	},
	"States end with the deletion of the task": func(s *store) {
		options := []jobs.Option{jobs.UniqueWith("k", jobs.UniqueOptions{States: []jobs.State{jobs.Failed, jobs.Completed}})}
		s.inStateOf("f", jobs.Completed, options...)
		s.pruneAll(db.Prune{Before: s.now.Add(time.Millisecond)})
		s.pruneKeys()
		if n := s.keyRows(); n != 0 {
			s.Errorf("got %d rows of keys, want none", n)
		}
		s.wantAdded(options...)
	},
	"For and States hold the key together": func(s *store) {
		options := []jobs.Option{jobs.UniqueWith("k", jobs.UniqueOptions{States: []jobs.State{jobs.Completed}, For: time.Hour})}
		id := s.inStateOf("f", jobs.Failed, options...)
		s.wantKept(id, options...)
		s.sleep(time.Hour)
		s.pruneKeys()
		done := s.inStateOf("f", jobs.Completed, options...)
		if done == id {
			s.Fatalf("got task %d, want a new task after the time of the failed one", id)
		}

		s.sleep(time.Hour)
		s.pruneKeys()
		s.wantKept(done, options...)
	},
	"Delete frees the key": func(s *store) {
		id := s.inStateOf("f", jobs.Completed, jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour}))
		s.apply(db.Delete(), id)
		s.wantAdded(jobs.Unique("k"))
		if n := s.keyRows(); n != 0 {
			s.Errorf("got %d rows of keys, want none", n)
		}
	},
	"Args compares the arguments, and not their text": func(s *store) {
		try := func(job, args string, options ...jobs.Option) jobs.Enqueued {
			spec := jobs.NewSpec(job, append([]jobs.Option{jobs.UniqueWith("", jobs.UniqueOptions{Args: true})}, options...)...)
			spec.Args = []byte(args)
			return must(s.Insert(s.Context(), []jobs.Spec{spec}, s.now))(s)[0]
		}
		first := try("f", `{"a":1,"b":[{"x":"<","y":null}]}`)
		if got := try("f", ` { "b": [{"y":null, "x":"\u003c"}], "a":1 }`); !got.Kept || got.ID != first.ID {
			s.Errorf("the same arguments: got %+v, want task %d kept", got, first.ID)
		}

		for name, got := range map[string]jobs.Enqueued{"another job": try("g", `{"a":1,"b":[{"x":"<","y":null}]}`),
			"other arguments": try("f", `{"a":1,"b":[{"x":"<","y":0}]}`), "a longer list": try("f", `[1,2]`), "list": try("f", `[1]`),
			"a key":        try("f", `{"a":1,"b":[{"x":"<","y":null}]}`, jobs.UniqueWith("k", jobs.UniqueOptions{Args: true})),
			"no arguments": try("f", ``)} {
			if got.Kept {
				s.Errorf("%s: got %+v, want a new task", name, got)
			}
		}

		if got := try("f", `null`, jobs.UniqueWith("k", jobs.UniqueOptions{Args: true})); got.Kept {
			s.Errorf("null with a key: got %+v, want a new task", got)
		}
	},
	"Replace and UntilStart together": func(s *store) {
		w, both := s.worker("f"), jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true, UntilStart: true})
		id := s.wantAdded(both)
		if got, want := s.try(both, jobs.Priority(9)), (jobs.Enqueued{ID: id, Replaced: true}); got != want {
			s.Errorf("a waiting task: got %+v, want %+v", got, want)
		}
		s.claimOnly(w)
		if next := s.wantAdded(both); next == id {
			s.Errorf("a running task: got task %d, want a new one", next)
		}
	},
	"the same key twice in one Insert adds one task": func(s *store) {
		spec := functionSpec("f", jobs.UniqueWith("", jobs.UniqueOptions{Args: true, For: time.Hour}))
		other := functionSpec("f")
		follower := functionSpec("f", jobs.UniqueWith("b", jobs.UniqueOptions{For: time.Hour}))
		follower.DependsOnEarlier = []int{2}
		added := must(s.Insert(s.Context(), []jobs.Spec{spec, other, spec, follower}, s.now))(s)
		if added[0].Kept || added[1].Kept || added[2] != (jobs.Enqueued{ID: added[0].ID, Kept: true}) || added[3].Kept {
			s.Errorf("got %+v, want only the third task kept, as the first", added)
		}
		if got := s.get(added[3].ID).DependsOn; len(got) != 1 || got[0] != added[0].ID {
			s.Errorf("got after %v, want the kept task %d", got, added[0].ID)
		}

		again := must(s.InsertSeq(s.Context(), specSeq([]jobs.Spec{spec, other, spec, follower}, nil), s.now))(s)
		if again[0].ID != added[0].ID || !again[0].Kept || again[1].Kept || !again[2].Kept || again[3] != (jobs.Enqueued{ID: added[3].ID,
			Kept: true}) {
			s.Errorf("again: got %+v, want all tasks but the second kept", again)
		}
	},
	"a replacement holds the key as the new settings say, and never shorter": func(s *store) {
		id := s.wantAdded(jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true, For: 2 * time.Hour}), jobs.Priority(1))
		for i, options := range [][]jobs.Option{{jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true})},
			{jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true, For: time.Hour})},
			{jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true, States: []jobs.State{jobs.Cancelled}})}} {
			if got, want := s.try(options...), (jobs.Enqueued{ID: id, Replaced: true}); got != want {
				s.Errorf("replacement %d: got %+v, want %+v", i, got, want)
			}
		}

		s.apply(db.Cancel("", false, s.now), id)
		s.sleep(time.Hour)
		s.wantKept(id, jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true}))
		s.sleep(2 * time.Hour)
		s.pruneKeys()
		s.wantKept(id, jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true})) // the cancelled task still holds its key
	},
	"a replacement holds the key for its own time after its own enqueue": func(s *store) {
		options := []jobs.Option{jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true, For: time.Hour})}
		id := s.wantAdded(options...)
		created := s.get(id).CreatedAt
		s.sleep(40 * time.Minute)
		if got, want := s.try(options...), (jobs.Enqueued{ID: id, Replaced: true}); got != want {
			s.Fatalf("got %+v, want %+v", got, want)
		}
		if got := s.get(id).CreatedAt; !got.Equal(created) {
			s.Errorf("got creation time %v, want %v as before the replacement", got, created)
		}

		s.apply(db.Cancel("", false, s.now), id)
		s.sleep(40 * time.Minute)
		s.pruneKeys()
		s.wantKept(id, options...) // an hour after the first enqueue, not after the second
		s.sleep(20 * time.Minute)
		s.pruneKeys()
		s.wantAdded(options...)
	},
	"a retry of a task whose key another task holds is refused": func(s *store) {
		options := []jobs.Option{jobs.UniqueWith("k", jobs.UniqueOptions{States: []jobs.State{jobs.Completed}})}
		first := s.inStateOf("f", jobs.Failed, options...)
		second := s.inStateOf("f", jobs.Completed, options...)
		refused := jobs.ActionResult{ID: first, State: jobs.Failed, Taken: true}
		if got := s.apply(db.Retry(s.now, s.now, false), first)[0]; got != refused {
			s.Errorf("got %+v, want %+v", got, refused)
		}
		if got := s.apply(db.Retry(s.now, s.now, false), second)[0]; !got.Done {
			s.Errorf("a retry of the holder: got %+v, want it done", got)
		}

		s.apply(db.Cancel("", false, s.now), second)
		if got := s.apply(db.Retry(s.now, s.now, false), first)[0]; !got.Done {
			s.Errorf("a retry when the key is free: got %+v, want it done", got)
		}

		s.finish(s.worker("f"), s.claimOnly(s.worker("f")), taskspec.Outcome{})
		s.wantKept(first, options...) // the retried task has taken its key back
	},
	"an edit moves the hold to the new key": func(s *store) {
		w := newOrderStore(s)
		id := w.add(jobs.UniqueWith("a", jobs.UniqueOptions{For: time.Hour}))
		done := w.add(jobs.UniqueWith("b", jobs.UniqueOptions{For: time.Hour}))
		s.apply(db.Cancel("", false, s.now), done)
		if _, err := s.tryEdit(id, jobs.Unique("b")); !errors.Is(err, jobs.ErrConflict) {
			s.Errorf("a key that a finished task holds: got error %v, want %v", err, jobs.ErrConflict)
		}

		w.edit(id, func(s *jobs.Spec) { s.UniqueKey = "c" })
		s.apply(db.Cancel("", false, s.now), id)
		s.wantKept(id, jobs.UniqueWith("test#c", jobs.UniqueOptions{Global: true}))
		s.wantAdded(jobs.UniqueWith("test#a", jobs.UniqueOptions{Global: true}))
	},
	"plain SQL respects and takes held keys": func(s *store) {
		s.now = time.Now().Truncate(time.Millisecond) // the view uses the clock of the database, so the store needs the real time
		id := s.inStateOf("f", jobs.Completed, jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour}))
		s.inStateOf("f", jobs.Completed, jobs.UniqueWith("s", jobs.UniqueOptions{States: []jobs.State{jobs.Completed}}))
		before := s.number(`SELECT count(*) FROM tasks`)
		s.exec(`INSERT INTO enqueue (job, unique_key, input) VALUES ('f', 'k', 'x')`)
		s.exec(`INSERT INTO enqueue (job, unique_key) VALUES ('f', 's')`)
		if n := s.number(`SELECT count(*) FROM tasks`) - before; n != 0 {
			s.Errorf("got %d tasks more, want none: task %d holds the key", n, id)
		}

		s.exec(`INSERT INTO enqueue (job, unique_key, unique_for, input) VALUES ('f', 'a', 3600000, 'x'),
			('f', 'a', 3600000, 'x'), ('f', 'b', NULL, 'x')`)
		s.exec(`INSERT INTO enqueue (job, unique_key, unique_states) VALUES ('f', 'c', 'cancelled,failed')`)
		tasks := must(s.List(s.Context(), jobs.Filter{States: taskspec.Unfinished(), OldestFirst: true}))(s)
		if len(tasks) != 3 || tasks[0].Unique.For != time.Hour || tasks[1].InputBytes != 1 ||
			!slices.Equal(tasks[2].Unique.States, []jobs.State{jobs.Cancelled, jobs.Failed}) {
			s.Fatalf("got %+v, want tasks with the keys a, b and c", tasks)
		}

		s.apply(db.Cancel("", false, s.now), ids(tasks)...)
		s.wantKept(tasks[0].ID, jobs.Unique("a"))
		s.wantAdded(jobs.Unique("b"))
		s.wantKept(tasks[2].ID, jobs.Unique("c"))
	},
	"of many concurrent inserts of all kinds one adds a task": func(s *store) {
		s.now = time.Now().Truncate(time.Millisecond)
		w := s.worker("f", command.Job)
		second := s.open(db.Options{Normal: true})
		raw := s.raw
		for i := range 5 {
			key := fmt.Sprint("key", i)
			var all sync.WaitGroup
			for n := range 8 {
				store := []*db.DB{s.DB, second}[n%2]
				all.Go(func() {
					options := []jobs.Option{jobs.UniqueWith(key, jobs.UniqueOptions{For: time.Hour})}
					if _, err := store.Insert(s.Context(), []jobs.Spec{functionSpec("f", options...)}, s.now); err != nil {
						s.Error(err)
					}
				})
			}

			all.Go(func() { // the first task ends while the goroutines insert
				for _, task := range s.claim(w, 1) {
					s.finish(w, task, taskspec.Outcome{})
				}
			})
			for range 2 {
				all.Go(func() {
					if _, err := raw.Exec(s.statement(`INSERT INTO enqueue (job, unique_key, unique_for) VALUES ('f', '` + key +
						`', 3600000)`)); err != nil {
						s.Error(err)
					}
				})
			}

			all.Wait()
			if n := s.number(`SELECT count(*) FROM tasks WHERE unique_key = 'f#` + key + `'`); n != 1 {
				s.Errorf("key %q: got %d tasks, want 1", key, n)
			}
		}
	},
}
