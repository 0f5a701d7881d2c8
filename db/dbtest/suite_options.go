package dbtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"example.com/runner/internal/taskoption"
	"example.com/runner/internal/taskoption/sample"
	"example.com/runner/jobs"
)

// notInSQL are the task options that the view enqueue does not have: it has points in time instead of delays, and the worker looks up the
// program.
var notInSQL = []string{"in", "expires_in", "path"}

// plainOptions adds a task with plain SQL for each task option, and compares the option of the task with the value that was inserted.
func plainOptions(s *store) {
	s.insert(task(), task()) // for after
	for i := range jobs.OptionList() {
		o := &jobs.OptionList()[i]
		if slices.Contains(notInSQL, o.Key) {
			continue
		}
		want := jobs.Command{}.With()
		sample.Set(o, &want, "/tmp")
		s.exec(fmt.Sprintf(`INSERT INTO enqueue (args, %s) VALUES (json_array('true'), ?)`, o.Key), plainValue(s, o.Field(&want)))
		id := s.number(`SELECT max(id) FROM tasks`)
		s.now = time.Now()
		s.look(s.worker()) // it moves a task that names others to its state
		t := s.get(id)
		got := taskoption.SpecOf(&t)
		got.ExpiresAt = t.ExpiresAt
		got.Input = must(s.Input(s.Context(), t.ID))(s)
		if a, b := plainValue(s, o.Field(&got)), plainValue(s, o.Field(&want)); !reflect.DeepEqual(a, b) {
			s.Errorf("%s: got %v, want %v", o.Key, a, b)
		}
	}
}

// plainValue is an option's value as docs/sql.md describes it.
func plainValue(s *store, field any) any {
	switch value := field.(type) {
	case *string:
		return *value
	case *jobs.Codes:
		return string(*value)
	case *int:
		return int64(*value)
	case *int64:
		return *value
	case *time.Duration:
		return value.Milliseconds()
	case *time.Time:
		return value.UnixMilli()
	case *[]byte:
		return *value
	}
	text, err := json.Marshal(field)
	if err != nil {
		s.Error(err)
	}
	return string(text)
}
