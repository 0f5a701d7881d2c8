package ui_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

// sampleRecord is the example in docs/json.md. It shows the keys, their order,
// and the format of the values.
const sampleRecord = `{"id":1040,"job":"command","args":["curl","-fsS","https://example.com/hook"],"label":null,"queue":"default",
 "state":"retrying","reason":"exit","priority":5,"lane":null,"unique_key":null,"unique_global":false,"after":[],"after_any":[],
 "schedule":null,"batch":null,"run_at":"2026-01-31T13:12:03.000Z","expires_at":null,"attempt":2,"max_attempts":3,"losses":0,
 "max_losses":3,"unique_for":null,"unique_states":null,"timeout":30,"kill_after":10,"backoff":"exponential","backoff_delay":24,
 "backoff_max":3600,"retry_on":null,"output_limit":1048576,"leave_children":false,"path":"/usr/bin/curl","cwd":"/srv/app",
 "env":{"TOKEN":null},"env_file":null,"input_bytes":0,"generation_id":6,"worker_id":"0199…","worker":"web1:811",
 "lease_expires_at":null,"cancel_requested_at":null,"paused_at":null,"paused_by":null,"paused_reason":null,
 "created_at":"2026-01-31T13:02:11.004Z","created_by":"ann",
 "updated_at":"2026-01-31T13:11:15.220Z","started_at":"2026-01-31T13:11:13.120Z","finished_at":null,"duration":2.1,
 "result":null,"error":"exit status 22","error_line":null,"exit_code":22,"signal":null,"output_bytes":118,"output_truncated":false,
 "children_killed":0,"children_left":0,
 "user_time":0.25,"system_time":0.125,"max_rss":9437184,"read_bytes":0,"written_bytes":4096,"progress":null}`

func TestTaskRecordLooksLikeSample(t *testing.T) {
	task := sampleTask().Task
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at.In(time.FixedZone("", 3600)) // a zone other than UTC, because the record must have the time in UTC
	}
	task.GenerationID, task.WorkerID, task.Worker = 6, "0199…", "web1:811"
	task.CreatedAt, task.UpdatedAt = at("2026-01-31T13:02:11.004Z"), at("2026-01-31T13:11:15.220Z")
	task.StartedAt, task.OutputBytes = at("2026-01-31T13:11:13.120Z"), 118
	task.Usage = command.Usage{User: 250 * time.Millisecond, System: 125 * time.Millisecond, MaxRSS: 9 << 20, Written: 4096}
	want := strings.ReplaceAll(sampleRecord, "\n ", "") + "\n"
	got := jsonLine(t, ui.NewTask(task, noonCET))
	for _, o := range taskspec.Options { // remove the options that the example does not have
		if o.Stored() && !strings.Contains(want, `"`+o.Key+`":`) {
			got = regexp.MustCompile(`"`+o.Key+`":[^,]*,`).ReplaceAllString(got, "")
		}
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// jsonLine returns a record as a line of JSON.
func jsonLine(t *testing.T, record any) string {
	t.Helper()
	var line bytes.Buffer
	if err := ui.WriteJSON(&line, record); err != nil {
		t.Fatal(err)
	}
	return line.String()
}

func TestRecordsKeepNumbersAndText(t *testing.T) {
	huge := json.RawMessage(`{"n":123456789012345678901234567890.10,"html":"<&>"}`)
	line := jsonLine(t, ui.NewTask(jobs.Task{Args: huge, Result: json.RawMessage("{\n \"n\": 9007199254740993}")}, noonCET))
	testkit.Contains(t, line, string(huge), `"result":{"n":9007199254740993}`)
	line = jsonLine(t, ui.NewTask(jobs.Task{Args: json.RawMessage("no\xff JSON")}, noonCET))
	testkit.Contains(t, line, `"args":"no\ufffd JSON"`)
	for d, want := range map[time.Duration]string{2100 * time.Millisecond: "2.1", 0: "0", time.Millisecond: "0.001",
		2099900 * time.Microsecond: "2.099",
		time.Hour:                  "3600", taskspec.MaxDelay + time.Millisecond: "315360000.001"} {
		if got := strings.TrimSpace(jsonLine(t, ui.Seconds(d))); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
	for data, want := range map[string]string{"a\x1b\n": `"data":"a\u001b\n","encoding":"utf-8"`,
		"a\xff": `"data":"Yf8=","encoding":"base64"`} {
		testkit.Contains(t, jsonLine(t, ui.NewChunk(admin.Chunk{Data: []byte(data)})), want)
	}
}

func TestRevealFillsEnvAndInput(t *testing.T) {
	s := sampleTask()
	if line := jsonLine(t, s.Record()); strings.Contains(line, "s3cret") || !strings.HasSuffix(line, `"generation_id":0,"state":"failed",`+
		`"reason":"exit","counted":true,"worker_id":null,"worker":"web1:811","started_at":"2026-01-31T13:11:13.000Z","finished_at":null,`+
		`"duration":2.1,"exit_code":22,"signal":null,"error":null,"output_bytes":118,"output_truncated":false,`+
		`"children_killed":0,"children_left":0,`+
		`"user_time":null,"system_time":null,"max_rss":null,"read_bytes":null,"written_bytes":null,`+
		`"error_line":null}],"outlived":[]}`+"\n") {
		t.Errorf("got %s, want no secret and the attempt at the end", line)
	}
	s.Reveal, s.Input = true, []byte("in\xff")
	line := jsonLine(t, s.Record())
	testkit.Contains(t, line, `"env":{"TOKEN":"s3cret"}`)
	if !strings.HasSuffix(line, `,"input":"aW7/"}`+"\n") {
		t.Errorf("got %s, want the input at the end", line)
	}
	s.Task.Env, s.Input = nil, nil
	line = jsonLine(t, s.Record())
	testkit.Contains(t, line, `"env":null`)
	if !strings.HasSuffix(line, `,"input":null}`+"\n") {
		t.Errorf("got %s, want no input at the end", line)
	}
}

func TestDurationOfRunningTaskIsItsRunningTime(t *testing.T) {
	running := sampleTasks()[0]
	testkit.Contains(t, jsonLine(t, ui.NewTask(running, noonCET)), `"duration":11,`)
	running.StartedAt = time.Time{}
	testkit.Contains(t, jsonLine(t, ui.NewTask(running, noonCET)), `"duration":null,`)
}

func TestTextsOfRecord(t *testing.T) {
	r := ui.NewTask(jobs.Task{ID: 7, Label: "a\tb\x1b", Args: json.RawMessage(`["<","\\"]`), Priority: 5}, noonCET)
	for key, want := range map[string]string{"id": "7", "job": "", "args": `["<","\\"]`, "label": "a\tb\x1b", "lane": ""} {
		testkit.Equal(t, key, ui.Text(r.Values(key)[0]), want)
	}
}
