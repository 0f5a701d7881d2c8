package dbtest

import (
	"database/sql"
	"fmt"
	"strings"

	"example.com/runner/jobs"
)

func tenant(text string) jobs.Option { return jobs.Metadata(map[string]string{"tenant": text}) }

func (s *store) wantTenant(text string, want ...int64) {
	s.Helper()
	s.wantIDs(s.list(jobs.Filter{Metadata: map[string]string{"tenant": text}}), want)
}

// addInEachWay adds six tasks of tenant a, each in a different way, and returns
// their ids.
func (s *store) addInEachWay() (ids []int64) {
	s.Helper()
	ids = s.insert(functionSpec("f", tenant("a")))
	ids = append(ids, s.insert(functionSpec("f", tenant("a")), functionSpec("f"), commandSpec(jobs.Lane("l"), tenant("a")))...)
	ids = append(ids[:2], ids[3])
	s.inTx(true, func(outer *sql.Tx) {
		spec := functionSpec("f", tenant("a"))
		ids = append(ids, must(s.InsertAllTx(s.Context(), outer, []jobs.Spec{spec}, s.now))(s)[0].ID)
	})
	s.exec(`INSERT INTO enqueue (args, metadata) VALUES (json_array('true'), '{"tenant":"a","other":"b"}')`)
	ids = append(ids, s.number(`SELECT max(id) FROM tasks`))
	s.exec(`INSERT INTO enqueue (args) VALUES (json_array('true'))`)
	held := s.insert(functionSpec("f", jobs.Unique("k")))
	replaced := s.try(jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true}), tenant("a"))
	if !replaced.Replaced || replaced.ID != held[0] {
		s.Fatalf("got %+v, want task %d replaced", replaced, held[0])
	}

	return append(ids, held[0])
}

var metadataTests = group{
	"a search finds tasks that were added in any way": func(s *store) {
		s.wantTenant("a", s.addInEachWay()...)
		s.wantTenant("b")
	},
	"a search compares whole texts and all keys": func(s *store) {
		long := strings.Repeat("é", 100)
		s.insert(functionSpec("f", tenant("a")), functionSpec("f", tenant(long+"1")), functionSpec("f", tenant(long+"2")),
			functionSpec("f", jobs.Metadata(map[string]string{"tenant": "a", "a.b/c": "1", "7": "x"})))
		s.wantTenant("a", 1, 4)
		s.wantTenant(long+"2", 3)
		s.wantTenant(long)
		s.wantTenant("a\x00")
		for _, texts := range []map[string]string{{"tenant": "a", "7": "x"}, {"7": "x"}, {"a.b/c": "1", "7": "x"}, {"a.b/c": "1"}} {
			s.wantIDs(s.list(jobs.Filter{Metadata: texts}), []int64{4})
		}

		s.wantIDs(s.list(jobs.Filter{Metadata: map[string]string{"tenant": "a"}, States: []jobs.State{jobs.Completed}}), nil)
	},
	"an edit and a replacement change the metadata": func(s *store) {
		id := s.try(tenant("a"), jobs.Unique("k")).ID
		s.edit(id, tenant("b"))
		s.wantTenant("a")
		s.wantTenant("b", id)
		s.try(tenant("c"), jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true}))
		s.wantTenant("b")
		s.wantTenant("c", id)
		s.try(jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true}))
		s.wantTenant("c")
	},
	"counts search by metadata": func(s *store) {
		for i := range 30 {
			s.insert(functionSpec("f", tenant(fmt.Sprint(i%3))))
		}

		f := jobs.Filter{Metadata: map[string]string{"tenant": "1"}}
		if n := must(s.Count(s.Context(), f))(s); n != 10 {
			s.Errorf("got %d tasks, want 10", n)
		}
		if n := must(s.CountUpTo(s.Context(), f, 7))(s); n != 7 {
			s.Errorf("got %d tasks up to 7, want 7", n)
		}
		if byState := must(s.CountByState(s.Context(), f))(s); byState[jobs.Pending] != 10 || len(byState) != 1 {
			s.Errorf("got %v tasks by state, want 10 pending ones", byState)
		}
	},
}
