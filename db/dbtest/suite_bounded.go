package dbtest

import (
	"fmt"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

var boundedLists = group{
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
