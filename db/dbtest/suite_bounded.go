package dbtest

import (
	"fmt"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

var boundedLists = group{
	"a part of a list stops, and the next one continues": func(s *store) {
		for i := range 12 {
			s.inState(jobs.Failed, jobs.Label(fmt.Sprint("l", i%6)))
			s.sleep(time.Minute)
		}

		want := s.list(jobs.Filter{Label: "l2"})
		slices.Reverse(want)
		for sort, f := range map[db.Sort]jobs.Filter{
			db.ByEnd: {Label: "l2", States: []jobs.State{jobs.Failed}},
			db.ByID:  {Label: "l2"}, // without a state, for a list of few failed tasks reads the index of all of them
		} {
			var found []int64
			parts := 0
			for p := (db.Part{Sort: sort, Limit: 3, Look: 5}); parts == 0 || p.After.ID != 0; parts++ {
				var tasks []jobs.Task
				var err error
				if tasks, p.After, err = s.ListPart(s.Context(), f, p); err != nil {
					s.Fatal(err)
				}
				found = append(found, ids(tasks)...)
			}

			s.wantIDs(found, want)
			if parts != 3 {
				s.Errorf("order %d: got %d parts of 5 of 12 tasks, want 3", sort, parts)
			}

			tasks, rest, err := s.ListPart(s.Context(), f, db.Part{Sort: sort, Limit: 1, Look: 11})
			if err != nil || len(tasks) != 1 || rest.ID != 0 {
				s.Errorf("order %d, a full part: got %v, rest %v, error %v; want one task and no rest", sort, ids(tasks), rest, err)
			}
		}
	},
}
