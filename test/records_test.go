package test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/batch"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/record"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// records maps the headings in docs/json.md to the records that they describe. If a record contains another record, the page describes the
// keys of the inner record only once, under its own heading.
var records = map[string]any{
	"task":          record.NewTask(jobs.Task{}, time.Now()),
	"enqueued task": more{batch.EnqueuedRecord(jobs.Task{}, runner.Enqueued{}, time.Now())},
	"revealed task": more{record.NewTask(jobs.Task{}, time.Now()).Reveal(nil, nil)}, "task in full": more{(&view.Task{}).Record()},
	"task of a schedule": record.NewScheduleTask(jobs.Spec{}), "revealed task of a schedule": record.Record{}.With("input", nil),
	"attempt": record.Attempt{}, "step": record.Step{}, "change": record.TaskChange{},
	"queue": record.Queue{}, "queue in detail": record.QueueStats{}, "worker": record.Worker{}, "status": record.Status{},
	"problem": record.Problem{}, "group of failures": record.FailureGroup{},
	"log chunk": record.Chunk{},
	"schedule":  record.Schedule{}, "schedule in full": record.FullSchedule{}, "applied schedule": record.AppliedSchedule{},
	"removed schedule": record.Removed{},
	"deleted task":     record.Deleted{}, "limit": record.Limit{}, "removed limit": record.LimitRemoved{},
	"backup": record.Backup{}, "restore": record.Restore{},
	"service": record.Service{}, "removed service": record.ServiceRemoved{},
	"moved table": record.Moved{}, "fence": record.Fence{}, "server": record.Serve{}, "check": record.Check{},
	"version": cli.Version{}, "error": failure.Body{},
}

// The type "more" is a record that begins with all keys of a task. For such a record, keysOf returns only the keys after those of the task.
type more struct{ record.Record }

// keysOf returns the keys of a record. If the record contains another record, keysOf leaves out the keys of the inner record.
func keysOf(t *testing.T, one any) (keys []string) {
	t.Helper()
	switch one := one.(type) {
	case record.Record:
		for _, m := range one {
			keys = append(keys, m.Key)
		}
		return keys
	case more:
		return keysOf(t, one.Record[len(record.NewTask(jobs.Task{}, time.Now())):])
	}
	for field := range reflect.TypeOf(one).Fields() {
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Type == reflect.TypeFor[record.Usage]():
			keys = append(keys, keysOf(t, record.Usage{})...)
		case field.Anonymous:
		case key == "" || options != "":
			t.Errorf("%T: field %s: got the tag %q, want a key without options", one, field.Name, field.Tag)
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// TestRecordsAreDocumented checks that docs/json.md and the records have the same keys in the same order, and that each key has a
// description.
func TestRecordsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| .+ \\|$")
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		documented[heading] = []string{}
		for _, match := range row.FindAllStringSubmatch(body, -1) {
			documented[heading] = append(documented[heading], match[1])
		}
		if _, ok := records[heading]; !ok {
			t.Errorf("docs/json.md: got a record %q that does not exist, want only existing records", heading)
		}
	}
	for heading, record := range records {
		if keys := keysOf(t, record); !slices.Equal(keys, documented[heading]) {
			t.Errorf("docs/json.md: %s: got the keys\n%v\nwant\n%v", heading, documented[heading], keys)
		}
	}
}
