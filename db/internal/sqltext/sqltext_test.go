package sqltext

import (
	"slices"
	"testing"
)

func TestTextRendersTemplate(t *testing.T) {
	fragments := map[string]string{"list": "array(?)", "plus": "", "open": "SELECT 1 FROM {tasks} WHERE id = ?"}
	// each template has three texts: for a file without a prefix, for a file
	// with a prefix, and for a server
	for template, want := range map[string][3]string{
		"SELECT 1": {"SELECT 1", "SELECT 1", "SELECT 1"},
		"SELECT tasks.id FROM {tasks} WHERE state = 'tasks {tasks} ?'": {"SELECT tasks.id FROM tasks WHERE state = 'tasks {tasks} ?'",
			"SELECT tasks.id FROM my_tasks AS tasks WHERE state = 'tasks {tasks} ?'",
			"SELECT tasks.id FROM ours.tasks AS tasks WHERE state = 'tasks {tasks} ?'"},
		"UPDATE {tasks} AS t SET a = ?, b = ?": {"UPDATE tasks AS t SET a = ?, b = ?", "UPDATE my_tasks AS t SET a = ?, b = ?",
			"UPDATE ours.tasks AS t SET a = $1, b = $2"},
		"a = ?2 AND b = ?1": {"a = ?2 AND b = ?1", "a = ?2 AND b = ?1", "a = $2 AND b = $1"},
		"a = ? AND {plus}b IN {list} AND c = ? LIMIT ?3": {"a = ? AND b IN array(?) AND c = ? LIMIT ?3",
			"a = ? AND b IN array(?) AND c = ? LIMIT ?3",
			"a = $1 AND b IN array($2) AND c = $3 LIMIT $3"},
		"EXISTS ({open}) AND a = ?": {"EXISTS (SELECT 1 FROM tasks WHERE id = ?) AND a = ?",
			"EXISTS (SELECT 1 FROM my_tasks AS tasks WHERE id = ?) AND a = ?",
			"EXISTS (SELECT 1 FROM ours.tasks AS tasks WHERE id = $1) AND a = $2"},
		"a - 1 = 'it''s ?' OR b = ? -- of {tasks}?\nAND \"?\" = ?": {"a - 1 = 'it''s ?' OR b = ? -- of {tasks}?\nAND \"?\" = ?",
			"a - 1 = 'it''s ?' OR b = ? -- of {tasks}?\nAND \"?\" = ?", "a - 1 = 'it''s ?' OR b = $1 -- of {tasks}?\nAND \"?\" = $2"},
		"a = '?": {"a = '?", "a = '?", "a = '?"},
	} {
		for i, d := range []*Dialect{{}, {Prefix: "my_"}, {Prefix: "ours.", Numbered: true}} {
			d.Fragments = fragments
			s := Query(template)
			for range 2 {
				if got := d.Text(s); got != want[i] {
					t.Errorf("template %s\ngot      %s\nwant     %s", template, got, want[i])
				}
			}
		}
	}
}

func TestStatementHasPartsOfItsOwn(t *testing.T) {
	d := &Dialect{Prefix: "ours.", Numbered: true, Fragments: Parts{"list": "array(?)", "where": "none"}}
	list := Query("SELECT {key} FROM {table}{where} LIMIT ?")
	parts := Parts{"table": "{tasks}", "key": "id", "where": " WHERE a = ? AND b IN {list}"}
	for range 2 {
		const want = "SELECT id FROM ours.tasks AS tasks WHERE a = $1 AND b IN array($2) LIMIT $3"
		if got := d.Text(list.With(parts)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}

	if s := list.With(parts); !s.Reads || !s.Once {
		t.Errorf("got reads %v, once %v; want true, true", s.Reads, s.Once)
	}
}

func TestSeriesRepeatsPart(t *testing.T) {
	s := &Series{Template: "SELECT * FROM ({parts}) LIMIT ?", Part: "{one}", Separator: " UNION ", Params: 2,
		Parts: Parts{"one": "SELECT a, ? FROM {tasks} WHERE b = ? LIMIT ?{after_parts}"}}
	for n, want := range map[int][2]string{
		1: {"SELECT * FROM (SELECT a, ? FROM tasks WHERE b = ? LIMIT ?3) LIMIT ?",
			"SELECT * FROM (SELECT a, $1 FROM tasks WHERE b = $2 LIMIT $3) LIMIT $3"},
		2: {"SELECT * FROM (SELECT a, ? FROM tasks WHERE b = ? LIMIT ?5 UNION SELECT a, ? FROM tasks WHERE b = ? LIMIT ?5) LIMIT ?",
			"SELECT * FROM (SELECT a, $1 FROM tasks WHERE b = $2 LIMIT $5 UNION SELECT a, $3 FROM tasks WHERE b = $4 LIMIT $5) LIMIT $5"},
	} {
		for i, d := range []*Dialect{{}, {Numbered: true}} {
			if got := d.Text(s.Of(n)); got != want[i] {
				t.Errorf("%d parts: got  %s\nwant %s", n, got, want[i])
			}
		}
		if first, second := s.Of(n), s.Of(n); first != second {
			t.Errorf("%d parts: got two statements, want one that is kept", n)
		}
	}
}

func TestDefinitionHasNamesWithoutAliases(t *testing.T) {
	const script = "CREATE INDEX {tasks_due} ON {tasks} (run_at); -- of {tasks}\nCREATE VIEW {tasks_view} AS SELECT '{x}' FROM {tasks} AS t"
	if got, want := (&Dialect{Prefix: "my_"}).Text(Definition(script)),
		"CREATE INDEX my_tasks_due ON my_tasks (run_at); -- of {tasks}\n"+
			"CREATE VIEW my_tasks_view AS SELECT '{x}' FROM my_tasks AS t"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Marks(script), []string{"tasks", "tasks_due", "tasks_view"}; !slices.Equal(got, want) {
		t.Errorf("got marks %v, want %v", got, want)
	}
}

func TestDefinitionHasNoAlias(t *testing.T) {
	trigger := Definition("CREATE TRIGGER {trigger} BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, {message}); END; DROP TABLE {list}")
	d := &Dialect{Prefix: "my_", Fragments: Parts{"list": "array(?)"}}
	s := trigger.With(Parts{"trigger": "{freeze_tasks}", "table": "{tasks}", "message": Literal("it's {tasks}?")})
	const want = "CREATE TRIGGER my_freeze_tasks BEFORE INSERT ON my_tasks BEGIN SELECT RAISE(ABORT, 'it''s {tasks}?'); END; " +
		"DROP TABLE my_list"
	if got := d.Text(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStatementsForOneUseAreNotCached(t *testing.T) {
	var d Dialect
	d.Text(&Statement{Template: "SELECT 1", Once: true})
	d.rendered.Range(func(any, any) bool { t.Error("got a cached statement, want none"); return true })
}
