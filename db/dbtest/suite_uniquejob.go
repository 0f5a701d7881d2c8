package dbtest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The group uniqueJobs tests that a unique key belongs to its job.
var uniqueJobs = group{
	"a key belongs to its job": func(s *store) {
		f := s.wantAdded(jobs.Unique("k"))
		s.wantKept(f, jobs.Unique("f#k"))
		other := must(s.Insert(s.Context(), []jobs.Spec{functionSpec("g", jobs.Unique("k")), commandSpec(jobs.Unique("k"))}, s.now))(s)
		if other[0].Kept || other[1].Kept {
			s.Errorf("got %+v, want two new tasks beside task %d", other, f)
		}
		s.wantKept(other[1].ID, jobs.UniqueWith("k", jobs.UniqueOptions{Global: true}))

		for i, want := range []string{"f#k", "g#k", "k"} {
			if got := s.get(f + int64(i)).UniqueKey; got != want {
				s.Errorf("task %d: got key %q, want %q", f+int64(i), got, want)
			}
		}
	},
	"an edit and a retry compare keys within the job": func(s *store) {
		w := newOrderStore(s)
		s.insert(functionSpec("g", jobs.Unique("b")))
		id := s.insert(functionSpec("f", jobs.Unique("a")))[0]
		w.edit(id, jobs.Unique("b")) // the key of g doesn't count
		if got := s.get(id).UniqueKey; got != "f#b" {
			s.Errorf("got key %q, want %q", got, "f#b")
		}

		other := s.insert(functionSpec("f", jobs.Unique("c")))[0]
		if got := s.edit(id, jobs.Unique("b")); got.Text != "" {
			s.Errorf("its own key: got change %q, want none", got.Text)
		}
		_, err := s.tryEdit(id, jobs.Unique("c"))
		if !errors.Is(err, jobs.ErrConflict) {
			s.Errorf("the key of task %d: got error %v, want %v", other, err, jobs.ErrConflict)
		}

		s.apply(db.Cancel("", false, s.now), id)
		s.insert(functionSpec("g", jobs.UniqueWith("b", jobs.UniqueOptions{Global: true})))
		if got := s.apply(db.Retry(s.now, s.now, false), id)[0]; !got.Done {
			s.Errorf("a retry beside the keys of g: got %+v, want it done", got)
		}
		s.wantKept(id, jobs.Unique("b"))
	},
	"plain SQL's key belongs to its job": func(s *store) {
		s.now = time.Now().Truncate(time.Millisecond)
		s.exec(`INSERT INTO enqueue (job, unique_key) VALUES ('f', 'k'), ('g', 'k'), ('command', 'c'), (NULL, 'd'),
			('f', 'f#k'), ('f', 'k'), ('g', 'g#k'), ('f', NULL), ('f', '')`)
		tasks := must(s.List(s.Context(), jobs.Filter{OldestFirst: true}))(s)
		var keys []string
		for _, task := range tasks {
			keys = append(keys, task.UniqueKey)
		}
		if want := []string{"f#k", "g#k", "c", "d", "", ""}; !slices.Equal(keys, want) {
			s.Fatalf("got keys %q, want %q", keys, want)
		}
		s.wantKept(tasks[0].ID, jobs.Unique("k"))
		s.wantKept(tasks[2].ID, jobs.UniqueWith("c", jobs.UniqueOptions{Global: true}))

		key := strings.Repeat("k", taskspec.MaxText-2)
		s.exec(`INSERT INTO enqueue (job, unique_key) VALUES ('f', '` + key + `')`)
		if _, err := s.raw.Exec(s.statement(`INSERT INTO enqueue (job, unique_key) VALUES ('f', '` + key + `k')`)); err == nil {
			s.Errorf("a key of %d bytes with its job: got no error, want one", taskspec.MaxText+1)
		}
	},
}
