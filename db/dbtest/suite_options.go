package dbtest

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit/sample"
)

// notInSQL lists the task options that the view enqueue has no columns for. It
// has points in time instead of delays, and the unique key itself instead of
// unique_args. It has no unique_global: a key belongs to its job. The worker
// looks up the path of the program. Only a hook has an event.
var notInSQL = []string{"in", "expires_in", "path", "event", "unique_args", "unique_global"}

// plainOptions inserts one task for each task option with plain SQL and
// compares the stored option with the inserted value.
func plainOptions(s *store) {
	s.insert(commandSpec(), commandSpec()) // for after
	for _, o := range taskspec.Options {
		if slices.Contains(notInSQL, o.Key) {
			continue
		}

		want := jobs.Command(command.Command{})
		sample.Set(o, &want, "/tmp")
		key := "unique_key"
		if o.Key == key {
			key = "label"
		}

		// The name of the column is in quotes, because PostgreSQL reserves the
		// word user.
		s.exec(fmt.Sprintf(`INSERT INTO enqueue (args, %s, "%s") VALUES (json_array('true'), '%[2]s', ?)`, key, o.Key),
			plainValue(s, o.Field(&want)))
		id := s.number(`SELECT max(id) FROM tasks`)
		s.now = time.Now()
		s.look(s.worker()) // the first cycle sets the state of a task with dependencies
		t := s.get(id)
		got := taskspec.SpecOf(&t)
		got.ExpiresAt = t.ExpiresAt
		got.Input = must(s.Input(s.Context(), t.ID))(s)
		if a, b := plainValue(s, o.Field(&got)), plainValue(s, o.Field(&want)); !reflect.DeepEqual(a, b) {
			s.Errorf("%s: got %v, want %v", o.Key, a, b)
		}
	}
}

// plainValue returns the value of an option as docs/sql.md describes it.
func plainValue(s *store, field any) any {
	switch value := field.(type) {
	case *taskspec.Text:
		return string(*value)
	case *taskspec.Number:
		return int64(*value)
	case *taskspec.Size:
		return int64(*value)
	case *taskspec.Duration:
		return time.Duration(*value).Milliseconds()
	case *taskspec.Moment:
		return time.Time(*value).UnixMilli()
	case *taskspec.Data:
		return []byte(*value)
	case *taskspec.States:
		return value.String()
	case *taskspec.Flag:
		if *value {
			return int64(1)
		}
		return int64(0)
	}
	text, err := json.Marshal(field)
	if err != nil {
		s.Error(err)
	}

	return string(text)
}

// insertRow inserts a row directly into the table tasks. Other programs should
// use the view enqueue instead. Columns that are not given get the defaults of
// the view enqueue.
func (s *store) insertRow(columns string, values ...any) {
	s.Helper()
	if _, err := s.tryInsertRow(columns, values...); err != nil {
		s.Errorf("%s = %v: got error %v, want none", columns, values, err)
	}
}

func (s *store) tryInsertRow(columns string, values ...any) (sql.Result, error) {
	given := strings.Split(columns, ", ")
	for _, one := range []struct {
		column string
		value  any
	}{{"generation_id", 1}, {"state", "pending"}, {"queue", "default"}, {"job", "command"}, {"priority", 5}, {"run_at", 1},
		{"max_losses", 3}, {"created_at", 1}, {"updated_at", 1}} {
		if !slices.Contains(given, one.column) {
			given, values = append(given, one.column), append(values, one.value)
		}
	}

	marks := strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")
	return s.raw.ExecContext(s.Context(), s.statement(`INSERT INTO tasks (`+strings.Join(given, ", ")+`) VALUES (`+marks+`)`),
		values...)
}

// wantRejected inserts a row, and wants an error that contains why.
func (s *store) wantRejected(row, why string) {
	s.Helper()
	if _, err := s.raw.ExecContext(s.Context(), s.statement(`INSERT INTO enqueue `+row)); err == nil {
		s.Errorf("%.80s: got no error, want one", row)
	} else if s.Server() != nil && (strings.Contains(row, "char(0)") || strings.Contains(row, `\u0000`) ||
		strings.HasPrefix(row, "(input)")) {
		return // a server itself rejects NUL characters, and input that is not a byte string
	} else if !strings.Contains(err.Error(), why) {
		s.Errorf("%.80s: got error %v, want one with %q", row, err, why)
	}
}
