package dbtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit/sample"
)

// notInSQL lists the task options that the view enqueue has no columns for. It
// has points in time instead of delays, and the unique key itself instead of
// unique_args. The worker looks up the path of the program. Only a hook has an
// event.
var notInSQL = []string{"in", "expires_in", "path", "event", "unique_args"}

// plainOptions inserts one task for each task option with plain SQL and compares the stored option with the
// inserted value.
func plainOptions(s *store) {
	s.insert(commandSpec(), commandSpec()) // for after
	for _, o := range taskspec.Options {
		if slices.Contains(notInSQL, o.Key) {
			continue
		}
		want := jobs.Command{}.With()
		sample.Set(o, &want, "/tmp")
		key := "unique_key"
		if o.Key == key {
			key = "label"
		}
		// The name of the column is in quotes, because PostgreSQL reserves the word user.
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
