package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

func tenant(text string) jobs.Option { return jobs.Metadata(map[string]string{"tenant": text}) }

func (s *store) index(keys ...string) {
	s.Helper()
	if err := s.IndexMetadata(s.Context(), keys); err != nil {
		s.Fatal(err)
	}
}

// texts returns the rows of the index, each as "key=text id".
func (s *store) texts() string {
	s.Helper()
	return s.joined(`SELECT key || '=' || value || ' ' || task_id FROM metadata_index ORDER BY task_id, key, value`)
}

// keys returns the rows of metadata_keys, each as its columns "key filled".
func (s *store) keys() string {
	s.Helper()
	return s.joined(`SELECT key || ' ' || filled FROM metadata_keys ORDER BY key`)
}

func (s *store) joined(query string) string {
	s.Helper()
	rows := must(s.raw.QueryContext(s.Context(), s.statement(query)))(s)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			s.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return strings.Join(all, ", ")
}

func (s *store) wantTexts(want string) {
	s.Helper()
	if got := s.texts(); got != want {
		s.Errorf("got rows %q, want %q", got, want)
	}
}

func (s *store) wantTenant(text string, want ...int64) {
	s.Helper()
	s.wantIDs(s.list(jobs.Filter{Metadata: map[string]string{"tenant": text}}), want)
}

// addInEachWay adds six tasks of tenant a, each in a different way, and returns their ids.
func (s *store) addInEachWay() (ids []int64) {
	s.Helper()
	ids = s.insert(functionSpec("f", tenant("a")))
	ids = append(ids, s.insert(functionSpec("f", tenant("a")), functionSpec("f"), commandSpec(jobs.Lane("l"), tenant("a")))...)
	ids = append(ids[:2], ids[3])
	s.within(true, func(outer *sql.Tx) {
		spec := functionSpec("f", tenant("a"))
		ids = append(ids, must(s.InsertTx(s.Context(), outer, &spec, s.now))(s).ID)
	})
	s.exec(`INSERT INTO enqueue (args, metadata) VALUES (json_array('true'), '{"tenant":"a","other":"b"}')`)
	ids = append(ids, s.number(`SELECT max(id) FROM tasks`))
	s.exec(`INSERT INTO enqueue (args) VALUES (json_array('true'))`)
	held := s.insert(functionSpec("f", jobs.Unique("k")))
	replaced := s.try(jobs.UniqueReplace("k"), tenant("a"))
	if !replaced.Replaced || replaced.ID != held[0] {
		s.Fatalf("got %+v, want task %d replaced", replaced, held[0])
	}
	return append(ids, held[0])
}

// checkIndex checks that the index has every task whose metadata has a text for the key tenant.
func (s *store) checkIndex() {
	s.Helper()
	if n := s.number(`SELECT count(*) FROM tasks WHERE options -> 'metadata' ->> 'tenant' IS NOT NULL AND NOT EXISTS (SELECT 1
		FROM metadata_index AS i WHERE i.key = 'tenant' AND i.task_id = tasks.id
		AND i.value = tasks.options -> 'metadata' ->> 'tenant')`); n != 0 {
		s.Errorf("got %d tasks that the index does not have, want none", n)
	}
}

var metadataTests = group{
	"without IndexMetadata nothing is indexed": func(s *store) {
		ids := s.addInEachWay()
		s.wantTexts("")
		s.wantTenant("a", ids...)
	},
	"tasks that are added before and after IndexMetadata are indexed": func(s *store) {
		before := s.addInEachWay()
		s.exec(`UPDATE tasks SET unique_key = NULL`)
		s.index("tenant", "none")
		s.index("none", "tenant") // the second call changes nothing
		after := s.addInEachWay()
		if got, want := s.keys(), "none 1, tenant 1"; got != want {
			s.Errorf("got keys %q, want %q", got, want)
		}
		all := append(before, after...)
		var rows []string
		for _, id := range all {
			rows = append(rows, fmt.Sprintf("tenant=a %d", id))
		}
		s.wantTexts(strings.Join(rows, ", "))
		s.wantTenant("a", all...)
		s.wantTenant("b")
	},
	"a search reads the index, and compares the texts of the tasks": func(s *store) {
		long := strings.Repeat("é", 100)
		s.insert(functionSpec("f", tenant("a")), functionSpec("f", tenant("a")), functionSpec("f", tenant(long+"1")),
			functionSpec("f", tenant(long+"2")), functionSpec("f", jobs.Metadata(map[string]string{"tenant": "a", "a.b/c": "1", "7": "x"})))
		s.index("tenant", "7")
		s.wantTenant(long+"2", 4)
		s.wantTenant(long)
		s.wantTenant("a\x00")
		for _, texts := range []map[string]string{{"tenant": "a", "7": "x"}, {"7": "x"}, {"a.b/c": "1", "7": "x"}, {"a.b/c": "1"}} {
			s.wantIDs(s.list(jobs.Filter{Metadata: texts}), []int64{5})
		}
		// Plain SQL changes the metadata of task 1, but does not update the index.
		s.exec(`UPDATE tasks SET options = '{"metadata":{"tenant":"b"}}' WHERE id = 1`)
		s.wantTenant("a", 2, 5)
		s.exec(`DELETE FROM metadata_index WHERE task_id = 2`) // without its row in the index, a search does not find task 2
		s.wantTenant("a", 5)
		s.wantIDs(s.list(jobs.Filter{Metadata: map[string]string{"tenant": "a"}, States: []jobs.State{jobs.Pending}}), []int64{5})
		s.exec(`UPDATE metadata_keys SET filled = 0`)
		s.wantTenant("a", 2, 5)
	},
	"an edit and a replacement change the index": func(s *store) {
		s.index("tenant")
		id := s.try(tenant("a"), jobs.Unique("k")).ID
		s.edit(id, tenant("b"))
		s.wantTexts("tenant=b 1")
		s.try(tenant("c"), jobs.UniqueReplace("k"))
		s.wantTexts("tenant=c 1")
		s.wantTenant("c", id)
		s.try(jobs.UniqueReplace("k"))
		s.wantTenant("c")
		s.try(tenant("d"), jobs.UniqueReplace("k"))
		s.wantTexts("tenant=d 1")
	},
	"a deleted task has no rows": func(s *store) {
		s.index("tenant")
		ended := []int64{s.inState(jobs.Completed, tenant("a")), s.inState(jobs.Completed, tenant("b"))}
		s.insert(functionSpec("f", tenant("c")))
		must(s.Delete(s.Context(), ended[:1]))(s)
		s.wantTexts("tenant=b 2, tenant=c 3")
		s.sleep(time.Hour)
		s.pruneAll(db.Prune{Before: s.now})
		s.wantTexts("tenant=c 3")
	},
	"keys that are not named any more are removed with their rows": func(s *store) {
		s.index("tenant", "other")
		for range 3 {
			specs := make([]jobs.Spec, 800)
			for i := range specs {
				specs[i] = functionSpec("f", jobs.Metadata(map[string]string{"tenant": "a", "other": fmt.Sprint(i)}))
			}
			s.insert(specs...)
		}
		s.index("other")
		if got, want := s.number(`SELECT count(*) FROM metadata_index`), int64(2400); got != want {
			s.Errorf("got %d rows, want %d", got, want)
		}
		if n := must(s.Count(s.Context(), jobs.Filter{Metadata: map[string]string{"tenant": "a"}}))(s); n != 2400 {
			s.Errorf("got %d tasks by a key without an index, want 2400", n)
		}
		s.index("tenant")
		s.checkIndex()
		if n := must(s.CountUpTo(s.Context(), jobs.Filter{Metadata: map[string]string{"tenant": "a"}}, 9999))(s); n != 2400 {
			s.Errorf("got %d tasks by a key with an index, want 2400", n)
		}
		byState := must(s.CountByState(s.Context(), jobs.Filter{Metadata: map[string]string{"tenant": "a"}}))(s)
		if byState[jobs.Pending] != 2400 || len(byState) != 1 {
			s.Errorf("got %v tasks by state, want 2400 pending ones", byState)
		}
		s.index()
		s.wantTexts("")
		s.insert(functionSpec("f", tenant("b")))
		s.wantTexts("")
		if got := s.keys(); got != "" {
			s.Errorf("got keys %q, want none", got)
		}
	},
	"an interrupted IndexMetadata is not used, and the next call completes it": func(s *store) {
		ids := s.addInEachWay()
		s.exec(`INSERT INTO metadata_keys (key, build, filled) VALUES ('tenant', 'b', 0)`)
		s.exec(`INSERT INTO metadata_index (key, value, task_id) VALUES ('tenant', 'a', 1), ('removed', 'x', 1)`)
		s.wantTenant("a", ids...)
		ids = append(ids, s.try(tenant("a")).ID)
		s.wantTenant("a", ids...)
		s.index("tenant")
		s.checkIndex()
		if n := s.number(`SELECT count(*) FROM metadata_index`); n != int64(len(ids)) {
			s.Errorf("got %d rows, want one for each of %d tasks", n, len(ids))
		}
		s.wantTenant("a", ids...)
	},
	"IndexMetadata ends with its context": func(s *store) {
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		if err := s.IndexMetadata(ctx, []string{"tenant"}); !errors.Is(err, context.Canceled) {
			s.Errorf("got error %v, want %v", err, context.Canceled)
		}
	},
	"no task is missing when tasks and indexes are added at the same time": func(s *store) {
		var all sync.WaitGroup
		for n := range 4 {
			all.Go(func() {
				for i := range 50 {
					var specs []jobs.Spec
					for range 1 + i%3 {
						specs = append(specs, functionSpec("f", tenant(fmt.Sprint("t", n))))
					}
					if i%5 == 0 {
						specs = append(specs, commandSpec(jobs.UniqueReplace(fmt.Sprint("k", i%10)), tenant(fmt.Sprint(n, i))))
					}
					if _, err := s.Insert(s.Context(), specs, s.now); err != nil {
						s.Error(err)
					}
				}
			})
		}
		for range 2 {
			all.Go(func() {
				for range 10 {
					for _, keys := range [][]string{{"tenant"}, {}} {
						if err := s.IndexMetadata(s.Context(), keys); err != nil && !errors.Is(err, jobs.ErrConflict) {
							s.Error(err)
						}
						s.checkSearch()
					}
				}
			})
		}
		all.Wait()
		s.index("tenant")
		s.checkIndex()
	},
	"a transaction of a server that began before an index leaves no task out": func(s *store) {
		if s.Server() == nil {
			return // in a file only one transaction at a time can write
		}
		const plain = `INSERT INTO enqueue (args, metadata) VALUES (json_array('true'), '{"tenant":"a"}')`
		old := must(s.raw.BeginTx(s.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead}))(s)
		defer func() { _ = old.Rollback() }()
		// The first query of the transaction "old" fixes the snapshot that this transaction reads.
		if _, err := old.ExecContext(s.Context(), s.statement(`SELECT count(*) FROM tasks`)); err != nil {
			s.Fatal(err)
		}
		s.index("tenant")
		if _, err := old.ExecContext(s.Context(), s.statement(plain)); err != nil {
			s.Fatal(err)
		}
		spec := functionSpec("f", tenant("a"))
		must(s.InsertTx(s.Context(), old, &spec, s.now))(s)
		if err := old.Commit(); err != nil {
			s.Fatal(err)
		}
		s.wantTenant("a", 1, 2)
		s.index()

		open := must(s.begin())(s)
		defer func() { _ = open.Rollback() }()
		if _, err := open.ExecContext(s.Context(), s.statement(plain)); err != nil {
			s.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(s.Context(), 300*time.Millisecond)
		defer cancel()
		if err := s.IndexMetadata(ctx, []string{"tenant"}); !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("got error %v while a transaction has added a task, want %v", err, context.DeadlineExceeded)
		}
		if err := open.Commit(); err != nil {
			s.Fatal(err)
		}
		s.index("tenant")
		s.wantTenant("a", 1, 2, 3)
	},
}

// checkSearch checks that a search finds at least the tasks that existed before it.
func (s *store) checkSearch() {
	before, err := s.Count(s.Context(), jobs.Filter{Jobs: []string{"f"}, Metadata: map[string]string{"tenant": "t0"}})
	if err != nil {
		s.Error(err)
	}
	found, err := s.Count(s.Context(), jobs.Filter{Jobs: []string{"f"}, Metadata: map[string]string{"tenant": "t0"}})
	if err != nil || found < before {
		s.Errorf("got %d tasks and error %v, want at least %d", found, err, before)
	}
}
