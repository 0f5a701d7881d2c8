package main

import (
	"bytes"
	"encoding/json"
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
	"example.com/runner/internal/selftest"
	"example.com/runner/internal/term"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// sampleRecord is the sample of docs/json.md. It defines the keys, their order, and the format of the values.
const sampleRecord = `{"id":1040,"job":"command","args":["curl","-fsS","https://example.com/hook"],"label":null,"queue":"default",
 "state":"retrying","reason":"exit","priority":5,"lane":null,"unique_key":null,"after":[],"after_any":[],
 "schedule":null,"run_at":"2026-01-31T13:12:03.000Z","expires_at":null,"attempt":2,"max_attempts":3,"losses":0,
 "max_losses":3,"timeout":30,"kill_after":10,"backoff":"exponential","backoff_delay":24,
 "backoff_max":3600,"retry_on":null,"output_limit":1048576,"path":"/usr/bin/curl","cwd":"/srv/app",
 "env":{"TOKEN":null},"env_file":null,"input_bytes":0,"generation_id":6,"worker_id":"0199…","worker":"web1:811",
 "lease_expires_at":null,"cancel_requested_at":null,"created_at":"2026-01-31T13:02:11.004Z","created_by":"ann",
 "updated_at":"2026-01-31T13:11:15.220Z","started_at":"2026-01-31T13:11:13.120Z","finished_at":null,"duration":2.1,
 "result":null,"error":"exit status 22","exit_code":22,"signal":null,"output_bytes":118,"output_truncated":false,
 "progress":null}`

func TestTaskRecordLooksLikeTheSample(t *testing.T) {
	task := sampleSheet().Task
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.In(time.FixedZone("", 3600)) // records use UTC whatever the zone of the time
	}
	task.GenerationID, task.WorkerID, task.Worker = 6, "0199…", "web1:811"
	task.CreatedAt, task.UpdatedAt = at("2026-01-31T13:02:11.004Z"), at("2026-01-31T13:11:15.220Z")
	task.StartedAt, task.OutputBytes = at("2026-01-31T13:11:13.120Z"), 118
	want := strings.ReplaceAll(sampleRecord, "\n ", "") + "\n"
	got := jsonLine(t, record.NewTask(task, noon))
	for _, o := range jobs.OptionList() { // options that the sample does not have
		if o.Stored() && !strings.Contains(want, `"`+o.Key+`":`) {
			got = regexp.MustCompile(`"`+o.Key+`":[^,]*,`).ReplaceAllString(got, "")
		}
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func jsonLine(t *testing.T, record any) string {
	t.Helper()
	var line bytes.Buffer
	if err := term.WriteJSON(&line, record); err != nil {
		t.Fatal(err)
	}
	return line.String()
}

func TestNumbersAndTextSurvive(t *testing.T) {
	huge := json.RawMessage(`{"n":123456789012345678901234567890.10,"html":"<&>"}`)
	line := jsonLine(t, record.NewTask(jobs.Task{Args: huge, Result: json.RawMessage("{\n \"n\": 9007199254740993}")}, noon))
	if !strings.Contains(line, string(huge)) || !strings.Contains(line, `"result":{"n":9007199254740993}`) {
		t.Errorf("got %+v; want Contains(line, string(huge)), Contains(line, `\"result\":{\"n\":9007199254740993}`)", line)
	}
	if line = jsonLine(t, record.NewTask(jobs.Task{Args: json.RawMessage("no\xff JSON")}, noon)); !strings.Contains(line,
		`"args":"no\ufffd JSON"`) {
		t.Errorf("got %+v; want Contains(line, `\"args\":\"no\\ufffd JSON\"`)", line)
	}
	for d, want := range map[time.Duration]string{2100 * time.Millisecond: "2.1", 0: "0", time.Millisecond: "0.001",
		2099900 * time.Microsecond: "2.099",
		time.Hour:                  "3600", jobs.MaxDelay + time.Millisecond: "315360000.001"} {
		if got := strings.TrimSpace(jsonLine(t, record.Seconds(d))); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	for data, want := range map[string]string{"a\x1b\n": `"data":"a\u001b\n","encoding":"utf-8"`,
		"a\xff": `"data":"Yf8=","encoding":"base64"`} {
		if line := jsonLine(t, record.NewChunk(jobs.Chunk{Data: []byte(data)})); !strings.Contains(line, want) {
			t.Errorf("%q is %s", data, line)
		}
	}
}

func TestRevealFillsEnvAndInput(t *testing.T) {
	s := sampleSheet()
	if line := jsonLine(t, s.Record()); strings.Contains(line, "s3cret") || !strings.HasSuffix(line, `"generation_id":0,"state":"failed",`+
		`"reason":"exit","counted":true,"worker_id":null,"worker":"web1:811","started_at":"2026-01-31T13:11:13.000Z","finished_at":null,`+
		`"duration":2.1,"exit_code":22,"signal":null,"error":null,"output_bytes":118,"output_truncated":false}],"outlived":[]}`+"\n") {
		t.Error(line)
	}
	s.Reveal, s.Input = true, []byte("in\xff")
	if line := jsonLine(t, s.Record()); !strings.Contains(line, `"env":{"TOKEN":"s3cret"}`) ||
		!strings.HasSuffix(line, `,"input":"aW7/"}`+"\n") {
		t.Errorf("got %+v; want Contains(line, `\"env\":{\"TOKEN\":\"s3cret\"}`), HasSuffix(line, `,\"input\":\"aW7/\"}`+\"\\n\")", line)
	}
	s.Task.Env, s.Input = nil, nil
	if line := jsonLine(t, s.Record()); !strings.Contains(line, `"env":null`) || !strings.HasSuffix(line, `,"input":null}`+"\n") {
		t.Errorf("got %+v; want Contains(line, `\"env\":null`), HasSuffix(line, `,\"input\":null}`+\"\\n\")", line)
	}
}

func TestDurationOfARunningTaskIsSoFar(t *testing.T) {
	running := sampleTasks()[0]
	if line := jsonLine(t, record.NewTask(running, noon)); !strings.Contains(line, `"duration":11,`) {
		t.Errorf("got %+v; want Contains(line, `\"duration\":11,`)", line)
	}
	running.StartedAt = time.Time{}
	if line := jsonLine(t, record.NewTask(running, noon)); !strings.Contains(line, `"duration":null,`) {
		t.Errorf("got %+v; want Contains(line, `\"duration\":null,`)", line)
	}
}

// records are the records of docs/json.md by heading. Keys of an embedded record are documented once, with that record.
var records = map[string]any{
	"task": record.NewTask(jobs.Task{}, noon), "enqueued task": more{batch.EnqueuedRecord(jobs.Task{}, runner.Enqueued{}, noon)},
	"revealed task": more{record.NewTask(jobs.Task{}, noon).Reveal(nil, nil)}, "task in full": more{(&view.Task{}).Record()},
	"task of a schedule": record.NewScheduleTask(jobs.Spec{}), "revealed task of a schedule": record.Record{}.With("input", nil),
	"attempt": record.Attempt{}, "step": record.Step{},
	"queue": record.Queue{}, "queue in detail": record.QueueStats{}, "worker": record.Worker{}, "status": record.Status{},
	"problem":   record.Problem{},
	"log chunk": record.Chunk{},
	"schedule":  record.Schedule{}, "schedule in full": record.FullSchedule{}, "applied schedule": record.AppliedSchedule{},
	"removed schedule": record.Removed{},
	"deleted task":     record.Deleted{}, "limit": record.Limit{}, "removed limit": record.LimitRemoved{}, "backup": record.Backup{},
	"service": record.Service{}, "removed service": record.ServiceRemoved{},
	"moved table": record.Moved{}, "fence": record.Fence{}, "server": record.Serve{}, "check": record.Check{},
	"selftest":              selftest.Report{},
	"violation":             selftest.Violation{},
	"figures of a selftest": selftest.Figures{}, "version": cli.Version{}, "error": failure.Body{},
}

// more is a record that begins with the keys of a task.
type more struct{ record.Record }

// keysOf returns the keys of a record. Those of an embedded record are left out.
func keysOf(t *testing.T, one any) (keys []string) {
	t.Helper()
	switch one := one.(type) {
	case record.Record:
		for _, m := range one {
			keys = append(keys, m.Key)
		}
		return keys
	case more:
		return keysOf(t, one.Record[len(record.NewTask(jobs.Task{}, noon)):])
	}
	for field := range reflect.TypeOf(one).Fields() {
		key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
		case key == "" || options != "":
			t.Errorf("%T: field %s has the tag %q: a key, and no omitempty", one, field.Name, field.Tag)
		default:
			keys = append(keys, key)
		}
	}
	return keys
}

// docs/json.md and the records have the same keys in the same order, and each key has a description.
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
			t.Errorf("docs/json.md has a record %q that is not there", heading)
		}
	}
	for heading, record := range records {
		if keys := keysOf(t, record); !slices.Equal(keys, documented[heading]) {
			t.Errorf("%s has the keys\n%v\ndocumented are\n%v", heading, keys, documented[heading])
		}
	}
}

func TestPairs(t *testing.T) {
	list, err := record.Pairs(record.NewTask(jobs.Task{ID: 7, Label: "a\tb\x1b", Args: json.RawMessage(`["<","\\"]`), Priority: 5}, noon))
	if err != nil || len(list) != len(record.NewTask(jobs.Task{}, noon)) {
		t.Fatalf("got %v %v; want no error, len(list) = len(record.NewTask(Task{}, noon))", list, err)
	}
	for i, want := range []record.Pair{{Key: "id", Value: "7"}, {Key: "job", Value: ""}, {Key: "args", Value: `["<","\\"]`},
		{Key: "label", Value: "a\tb\x1b"}} {
		if list[i] != want {
			t.Errorf("%+v, want %+v", list[i], want)
		}
	}
}
