package input

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/ops"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

func testLines(t testing.TB, base jobs.Spec) *lineReader {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"convert.sh", "true"} {
		if err := os.WriteFile(dir+"/"+name, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return newLineReader(base, ops.Invocation{Dir: dir, Path: dir})
}

func BenchmarkBatchLine(b *testing.B) {
	for _, test := range []struct{ name, line string }{
		{"array", `["convert.sh","in.mov","out.mp4"]`},
		{"short", `{"args":["convert.sh","in.mov","out.mp4"],"queue":"media"}`},
		{"record", `{"id":1040,"job":"command","args":["convert.sh","in.mov"],"label":null,"queue":"default","state":"pending",` +
			`"reason":null,"priority":5,"lane":null,"unique_key":null,"after":[],"after_any":[],"schedule":null,` +
			`"run_at":"2026-01-31T13:12:03.000Z","expires_at":null,"attempt":0,"max_attempts":3,"losses":0,"max_losses":3,` +
			`"unique_for":null,"unique_states":null,"timeout":30,"kill_after":10,"backoff":"exponential","backoff_delay":24,` +
			`"backoff_max":3600,"retry_on":null,"output_limit":1048576,"leave_children":false,"path":"/usr/bin/curl",` +
			`"cwd":"/srv/app","env":null,"env_file":null,"input_bytes":0,"generation_id":6,"worker_id":null,"worker":null,` +
			`"lease_expires_at":null,"cancel_requested_at":null,"created_at":"2026-01-31T13:02:11.004Z","created_by":"ann",` +
			`"updated_at":"2026-01-31T13:11:15.220Z","started_at":null,"finished_at":null,"duration":null,"result":null,` +
			`"error":null,"exit_code":null,"signal":null,"output_bytes":0,"output_truncated":false,"children_killed":0,` +
			`"children_left":0,"progress":null}`},
		{"function", `{"job":"email.send","args":{"to":"someone@example.com","subject":"a payload of about one hundred bytes","n":1}}`},
	} {
		b.Run(test.name, func(b *testing.B) {
			l := testLines(b, jobs.Command(command.Command{}))
			l.base.Job = ""
			b.ReportAllocs()
			for b.Loop() {
				spec, _, err := l.spec([]byte(test.line))
				if err == nil {
					err = taskspec.Validate(&spec)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestBatchKnowsKeysOfRecords(t *testing.T) {
	l := testLines(t, jobs.Command(command.Command{}))
	for _, record := range []ui.Record{EnqueuedRecord(jobs.Task{}, jobs.Enqueued{}, sampleTime),
		(&ui.Task{Reveal: true}).Record()} {
		text, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(text, &keys); err != nil {
			t.Fatal(err)
		}
		for key := range keys {
			if _, known := l.keys[key]; !known {
				t.Errorf("%T: got an unknown key %s, want every key of a record known to a batch", record, key)
			}
		}
	}
}

func TestInvalidBatchLinesAreRejected(t *testing.T) {
	l := testLines(t, jobs.Command(command.Command{}))
	l.base.Job = ""
	for _, test := range []struct{ line, want string }{
		{`{"args":["true"],"quue":1}`, `unknown field "quue" (queue?)`},
		{`{"args":["true"],"xyzzy":{"a":["}",1]}}`, `unknown field "xyzzy"`},
		{`{"args":["true"`, "is not JSON: unexpected end of JSON input"},
		{`{"args":["true"]} x`, "is not JSON: invalid character 'x' after top-level value"},
		{"{\"args\":[\"tr\xffue\"]}", "is not UTF-8"},
		{`"true"`, "is neither an object nor an array"},
		{`null`, "is neither an object nor an array"},
		{`[]`, "args: a command needs a JSON array of strings, its argv"},
		{`[1]`, "args: a command needs a JSON array of strings, its argv"},
		{`["true",1]`, "args: a command needs a JSON array of strings, its argv"},
		{`[""]`, "args: the command is empty"},
		{`{}`, "args: a command needs args or shell"},
		{`{"args":null}`, "args: a command needs args or shell"},
		{`{"args":{"a":1}}`, "args: a command needs a JSON array of strings, its argv"},
		{`{"args":["true"],"shell":"x"}`, "shell: goes with neither args nor another job than command"},
		{`{"job":"a.b","shell":"x"}`, "shell: goes with neither args nor another job than command"},
		{`{"job":"a b"}`, `job: invalid name "a b"`},
		{`{"job":"a","cwd":"/"}`, "job: cwd belongs to commands, not to a"},
		{`{"job":"a","queue":5}`, "queue: must be a string"},
		{`{"job":"a","priority":1.5}`, "priority: 1.5 must be a whole number"},
		{`{"job":"a","priority":4294967296}`, "priority: 4294967296 is out of range (-2147483648 to 2147483647)"},
		{`{"job":"a","max_attempts":0}`, "max_attempts: 0 is out of range"},
		{`{"job":"a","max_losses":-1}`, "max_losses: -1 is out of range"},
		{`{"job":"a","output_limit":9223372036854775808}`, "output_limit: 9223372036854775808 must be a whole number"},
		{`{"job":"a","timeout":"5s"}`, "timeout: must be a number of seconds"},
		{`{"job":"a","timeout":true}`, "timeout: must be a number of seconds"},
		{`{"job":"a","timeout":-1}`, "timeout: -1 is out of range (0 to 10 years, in seconds)"},
		{`{"job":"a","in":1e999}`, "in: 1e999 is out of range (0 to 10 years, in seconds)"},
		{`{"job":"a","run_at":"tomorrow"}`, `run_at: invalid time "tomorrow"; use 2026-01-31T15:04:05Z`},
		{`{"job":"a","run_at":1767225600}`, "run_at: must be a string"},
		{`{"job":"a","run_at":"2030-01-01T00:00:00Z","in":5}`, "run_at: give a time or a delay, not both"},
		{`{"job":"a","expires_at":"2030-01-01T00:00:00Z","expires_in":5}`, "expires_at: give a time or a delay, not both"},
		{`{"args":["true"],"env":["A"]}`, "env: must be an object"},
		{`{"args":["true"],"env":{"A":1}}`, "env: every value must be a string"},
		{`{"args":["true"],"env":{"A":null}}`, "env: A is hidden; export with --reveal"},
		{`{"args":["true"],"input":"?"}`, "input: is not base64"},
		{`{"args":["true"],"input_bytes":3,"input":null}`, "input is hidden, or was not stored; export with --reveal"},
		{`{"args":["true"],"path":"bin/true"}`, `path: "bin/true" is not absolute`},
		{`{"args":["true"],"retry_on":"75"}`, "retry_on: needs max_attempts above 1"},
		{`{"args":["true"],"max_attempts":2,"retry_on":"x"}`,
			`retry_on: invalid exit codes "x"; use codes and ranges within 1-255, such as 75,100-111`},
		{`{"args":["true"],"backoff":"random"}`, `backoff: invalid value "random"; use one of fixed, linear, exponential`},
		{`{"args":["true"],"state":"cancelled"}`, "the task has finished: its state is cancelled"},
		{`{"args":["true"],"lane":""}`, "lane: is empty"},
		{`{"args":["true"],"after_any":7}`, "after_any: must be an array of ids"},
		{`["nosuch"]`, `"nosuch" not found in PATH; `},
	} {
		spec, _, err := l.spec([]byte(test.line))
		if err == nil {
			err = taskspec.Validate(&spec)
		}
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s:\n got %v\nwant %s", test.line, err, test.want)
		}
	}
}

func TestBatchLineOverridesOptionsOfCommandLine(t *testing.T) {
	base := jobs.Command(command.Command{Dir: "/base", Env: map[string]string{"A": "base", "B": "base"}, EnvFile: "/base.env",
		Input: []byte("base")}, jobs.Queue("base"), jobs.Priority(1), jobs.In(time.Minute),
		jobs.WithBackoff(jobs.Backoff{Delay: time.Second}))
	base.Job = ""
	l := testLines(t, base)
	spec := func(line string) jobs.Spec {
		t.Helper()
		s, _, err := l.spec([]byte(line))
		if err == nil {
			err = taskspec.Validate(&s)
		}
		if err != nil {
			t.Fatalf("%s: got error %v, want none", line, err)
		}
		return s
	}
	s := spec(`{"args":["true"],"env":{"A":"line"},"backoff_delay":0.0001,"run_at":"2030-01-31T14:00:00+01:00","kill_after":0}`)
	testkit.Equal(t, "queue", s.Queue, "base")
	testkit.Equal(t, "priority", s.Priority, 1)
	testkit.Equal(t, "cwd", s.Cwd, "/base")
	testkit.Equal(t, "env file", s.EnvFile, "/base.env")
	testkit.Equal(t, "input", string(s.Input), "base")
	testkit.Equal(t, "max attempts", s.MaxAttempts, 1)
	testkit.Equal(t, "backoff delay", s.Backoff.Delay, time.Millisecond)
	testkit.Equal(t, "in", s.In, 0)
	testkit.Equal(t, "hour of run_at", s.RunAt.UTC().Hour(), 13)
	testkit.Equal(t, "kill after", s.KillAfter, 0)
	testkit.Equal(t, "path", s.Path, l.caller.Dir+"/true")
	testkit.Equal(t, "env", s.Env, map[string]string{"A": "line", "B": "base"})
	s = spec(`{"args":["true"],"cwd":"sub","backoff_delay":7200,"in":0}`)
	testkit.Equal(t, "cwd", s.Cwd, l.caller.Dir+"/sub")
	testkit.Equal(t, "backoff max", s.Backoff.Max, 2*time.Hour)
	testkit.Equal(t, "in", s.In, 0)
	testkit.Equal(t, "run_at is zero", s.RunAt.IsZero(), true)
	s = spec(`{"job":"a.b","args":[ 1 , "a b" ]}`)
	testkit.Equal(t, "cwd", s.Cwd, "")
	testkit.Equal(t, "env file", s.EnvFile, "")
	testkit.Equal(t, "path", s.Path, "")
	testkit.Equal(t, "max attempts", s.MaxAttempts, 1)
	testkit.Equal(t, "args", string(s.Args), `[1,"a b"]`)
	if s.Env != nil || s.Input != nil {
		t.Errorf("got env %v and input %q, want none", s.Env, s.Input)
	}
	testkit.Equal(t, "env[A] of the base", base.Env["A"], "base")
	l.base.DependsOn, l.base.DependsOnAny = []int64{7}, []int64{8}
	s = spec(`{"args":["true"],"after_any":["x"]}`)
	testkit.Equal(t, "after", s.DependsOn, []int64{7})
	testkit.Len(t, "after any", s.DependsOnAny, 0)
}

func FuzzBatchLine(f *testing.F) {
	for _, seed := range []string{`["true"]`, `{"args":["true"],"env":{"A":"\u0041"},"timeout":1.5}`,
		`{"job":"a.b","args":{"a":[{},"]}"]} , "in" : 1 }`,
		`{"\u0061rgs":["true"]}`, `{"args":[ "\\\"" ]}`} {
		f.Add(seed)
	}
	l := testLines(f, jobs.Command(command.Command{}))
	l.base.Job = ""
	l.caller.Elsewhere = true
	f.Fuzz(func(t *testing.T, line string) {
		s, _, err := l.spec([]byte(strings.TrimSpace(line)))
		if err != nil || !strings.HasPrefix(strings.TrimSpace(line), "{") {
			return
		}
		var values map[string]any // the line as encoding/json parses it, to compare with
		testkit.NoError(t, json.Unmarshal([]byte(line), &values))
		want := map[string]string{"job": command.Job, "queue": "default", "label": "", "unique_key": "", "retry_on": "",
			"backoff": "exponential"}
		for key := range want {
			if text, ok := values[key].(string); ok && (key != "job" || text != "") {
				want[key] = text
			}
		}
		got := map[string]string{"job": s.Job, "queue": s.Queue, "label": s.Label, "unique_key": s.UniqueKey, "retry_on": string(s.RetryOn),
			"backoff": string(s.Backoff.Strategy)}
		if !maps.Equal(got, want) {
			t.Errorf("%q:\n got %v\nwant %v", line, got, want)
		}
		for key := range values {
			_, known := l.keys[key]
			testkit.Equal(t, line+": known", known, true)
		}
	})
}

// sampleTime is the time in the sample records.
var sampleTime = time.Date(2026, 1, 31, 14, 12, 3, 0, time.UTC)
