package test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/input"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// records maps the headings in docs/json.md to the records that they describe.
// If a record contains another record, the page describes the keys of the inner
// record only once, under its own heading.
var records = map[string]ui.Record{
	"task":               ui.NewTask(jobs.Task{}, time.Now()),
	"enqueued task":      more(input.EnqueuedRecord(jobs.Task{}, jobs.Enqueued{}, time.Now()), ui.NewTask(jobs.Task{}, time.Now())),
	"revealed task":      more(ui.Reveal(ui.NewTask(jobs.Task{}, time.Now()), nil, nil), ui.NewTask(jobs.Task{}, time.Now())),
	"task in full":       more((&ui.Task{}).Record(), ui.NewTask(jobs.Task{}, time.Now())),
	"task of a schedule": ui.NewScheduleTask(jobs.Spec{}),
	"revealed task of a schedule": more(ui.Reveal(ui.NewScheduleTask(jobs.Spec{}), nil, nil),
		ui.NewScheduleTask(jobs.Spec{})),
	"attempt":           ui.NewAttempt(admin.Attempt{}),
	"step":              ui.NewStep(admin.Step{}, time.Now()),
	"change":            ui.NewTaskChange(db.TaskChange{}, time.Now()),
	"queue":             ui.NewQueue(admin.QueueStatus{}, time.Now(), ""),
	"worker":            ui.NewWorker(admin.Worker{}, time.Now()),
	"status":            (&ui.Status{}).Record(),
	"problem":           ui.NewProblem(ui.Problem{}),
	"group of failures": ui.NewFailureGroup(ui.FailureGroup{}, "", time.Now()),
	"log chunk":         ui.NewChunk(admin.Chunk{}),
	"schedule":          ui.NewSchedule(jobs.Schedule{}, time.Now(), false),
	"schedule in full": more(ui.NewFullSchedule(jobs.Schedule{}, time.Now(), false, nil),
		ui.NewSchedule(jobs.Schedule{}, time.Now(), false)),
	"applied schedule": more(ui.NewAppliedSchedule(jobs.Schedule{}, time.Now(), ""),
		ui.NewSchedule(jobs.Schedule{}, time.Now(), false)),
	"removed schedule": ui.RemovedSchedule(""),
	"deleted task":     ui.Deleted(0, false),
	"limit":            ui.NewLimit(admin.LimitStatus{}, time.Now()),
	"removed limit":    ui.RemovedLimit(admin.Target{}),
	"backup":           ui.Backup("", 0),
	"restore":          ui.Restore("", 0, ""),
	"service":          ui.Service("", "", false, ""),
	"removed service":  ui.RemovedService("", "", false),
	"moved table":      ui.Moved("", 0),
	"fence":            ui.Fence(0, 0, false),
	"server":           ui.Serve("", ""),
	"check":            ui.Check("", "", "", ""),
	"version":          cli.Version(),
	"error":            ui.ErrorRecord(&ui.Error{}),
}

// more returns what a record has after the keys of another record, with which
// it begins.
func more(whole, first ui.Record) ui.Record { return whole[len(first):] }

// keysOf returns the keys of a record.
func keysOf(r ui.Record) (keys []string) {
	for _, m := range r {
		if m.Key != "" {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// TestRecordsAreDocumented checks that docs/json.md and the records have the
// same keys in the same order, and that each key has a description.
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
