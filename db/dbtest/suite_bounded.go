package dbtest

import (
	"fmt"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

var boundedLists = group{
	"a bounded list finds each pending task": func(s *store) {
		var all []int64
		for i := range 60 {
			queue, job := jobs.Queue(fmt.Sprint("q", i%3)), fmt.Sprint("j", i%2)
			all = append(all, s.insert(functionSpec(job, queue, jobs.Priority(i%5)))...)
		}
		for range 5 {
			s.inState(jobs.Completed)
		}
		pending := []jobs.State{jobs.Pending}
		for _, f := range []jobs.Filter{
			{}, {Queues: []string{"q1"}}, {Queues: []string{"q2", "q0", "q2"}}, {Jobs: []string{"j1"}}, {Queues: []string{"q\x00"}},
			{Queues: []string{"q0"}, Jobs: []string{"j0", "j1"}}, {After: all[20]}, {After: all[9], Queues: []string{"q0"}},
		} {
			f.States = pending
			want := s.list(f)
			slices.Reverse(want)
			var got []int64
			for {
				tasks, rest, err := s.ListBounded(s.Context(), f, 7, 1)
				if err != nil || rest != 0 {
					s.Fatalf("filter %+v: got rest %d and error %v, want none", f, rest, err)
				}
				got = append(got, ids(tasks)...)
				if len(tasks) < 7 {
					break
				}
				f.Before = tasks[6].ID
			}
			s.wantIDs(got, want)
		}
		for i := range 120 { // 120 jobs are too many for a list that reads the tasks of each job and merges them
			s.insert(functionSpec(fmt.Sprint("job", i)))
		}
		f := jobs.Filter{States: pending}
		tasks, rest, err := s.ListBounded(s.Context(), f, 130, 1)
		if err != nil || rest != 0 {
			s.Errorf("many jobs: got rest %d and error %v, want none", rest, err)
		}
		want := s.list(f)
		slices.Reverse(want)
		s.wantIDs(ids(tasks), want[:130])
	},
	"a bounded list stops and continues": func(s *store) {
		for i := range 12 {
			s.inState(jobs.Failed, jobs.Label(fmt.Sprint("l", i%6)))
			s.sleep(time.Minute)
		}
		var found []int64
		f := jobs.Filter{Label: "l2", States: []jobs.State{jobs.Failed}}
		parts := 0
		mark := db.TimeMark{ID: -1}
		for ; mark.ID != 0; parts++ {
			o := db.TimeOrder{At: mark.At, ID: mark.ID, Limit: 3}
			var tasks []jobs.Task
			var err error
			if tasks, mark, err = s.ListByTimeBounded(s.Context(), f, o, 5); err != nil {
				s.Fatal(err)
			}
			found = append(found, ids(tasks)...)
		}
		all := s.list(jobs.Filter{Label: "l2"})
		slices.Reverse(all)
		s.wantIDs(found, all)
		if parts != 3 {
			s.Errorf("got %d parts of 5 of 12 tasks, want 3", parts)
		}
		f.States, found, parts = nil, nil, 0 // list all states: for a rare state, ListBounded would read the whole index of the state
		for rest := int64(-1); rest != 0; parts++ {
			f.Before = max(rest, 0)
			var tasks []jobs.Task
			var err error
			if tasks, rest, err = s.ListBounded(s.Context(), f, 3, 5); err != nil {
				s.Fatal(err)
			}
			found = append(found, ids(tasks)...)
		}
		s.wantIDs(found, all)
		if parts != 3 {
			s.Errorf("got %d parts of 5 of 12 tasks, want 3", parts)
		}
		f.Before = 0
		tasks, rest, err := s.ListBounded(s.Context(), f, 1, 11)
		if err != nil || len(tasks) != 1 || rest != 0 {
			s.Errorf("a full page: got %v, rest %d, error %v; want one task and no rest", ids(tasks), rest, err)
		}
	},
}
