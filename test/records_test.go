package test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/batch"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// records maps the headings in docs/json.md to the records that they describe. If a record contains another record, the page describes the
// keys of the inner record only once, under its own heading.
var records = map[string]term.Record{
	"task":               record.NewTask(jobs.Task{}, time.Now()),
	"enqueued task":      more(batch.EnqueuedRecord(jobs.Task{}, runner.Enqueued{}, time.Now()), record.NewTask(jobs.Task{}, time.Now())),
	"revealed task":      more(record.Reveal(record.NewTask(jobs.Task{}, time.Now()), nil, nil), record.NewTask(jobs.Task{}, time.Now())),
	"task in full":       more((&view.Task{}).Record(), record.NewTask(jobs.Task{}, time.Now())),
	"task of a schedule": record.NewScheduleTask(jobs.Spec{}),
	"revealed task of a schedule": more(record.Reveal(record.NewScheduleTask(jobs.Spec{}), nil, nil),
		record.NewScheduleTask(jobs.Spec{})),
	"attempt":           record.NewAttempt(jobs.Attempt{}),
	"step":              record.NewStep(jobs.Step{}),
	"change":            record.NewTaskChange(admin.TaskChange{}),
	"queue":             record.NewQueue(runner.Queue{}, time.Now()),
	"worker":            record.NewWorker(runner.Worker{}),
	"status":            (&view.Status{}).Record(),
	"problem":           record.NewProblem(present.Problem{}),
	"group of failures": record.NewFailureGroup(present.FailureGroup{}, ""),
	"log chunk":         record.NewChunk(jobs.Chunk{}),
	"schedule":          record.NewSchedule(jobs.Schedule{}, false),
	"schedule in full":  more(record.NewFullSchedule(jobs.Schedule{}, false, nil), record.NewSchedule(jobs.Schedule{}, false)),
	"applied schedule":  more(record.NewAppliedSchedule(jobs.Schedule{}, ""), record.NewSchedule(jobs.Schedule{}, false)),
	"removed schedule":  record.RemovedSchedule(""),
	"deleted task":      record.Deleted(0, false),
	"limit":             record.NewLimit(runner.LimitStatus{}),
	"removed limit":     record.RemovedLimit(jobs.Target{}),
	"backup":            record.Backup("", 0),
	"restore":           record.Restore("", 0, ""),
	"service":           record.Service("", "", false, ""),
	"removed service":   record.RemovedService("", "", false),
	"moved table":       record.Moved("", 0),
	"fence":             record.Fence(0, 0, false),
	"server":            record.Serve("", ""),
	"check":             record.Check("", "", "", ""),
	"version":           cli.Version(),
	"error":             failure.Record(&failure.Error{}),
}

// more returns what a record has after the keys of another record, with which it
// begins.
func more(whole, first term.Record) term.Record { return whole[len(first):] }

// keysOf returns the keys of a record.
func keysOf(r term.Record) (keys []string) {
	for _, m := range r {
		keys = append(keys, m.Key)
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
		if keys := keysOf(record); !slices.Equal(keys, documented[heading]) {
			t.Errorf("docs/json.md: %s: got the keys\n%v\nwant\n%v", heading, documented[heading], keys)
		}
	}
}
