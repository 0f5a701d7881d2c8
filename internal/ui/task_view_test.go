package ui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/orphans"
	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

// sampleTask returns a task that failed twice and waits for a retry.
func sampleTask() ui.Task {
	code := 22
	t := sampleTasks()[1]
	t.Path, t.Cwd, t.CreatedBy, t.Error = "/usr/bin/curl", "/srv/app", "ann", "exit status 22"
	t.CreatedAt, t.UpdatedAt, t.Env = noonCET.Add(-9*time.Minute-4*time.Second), noonCET.Add(220*time.Millisecond),
		map[string]string{"TOKEN": "s3cret"}
	t.RunAt, t.Timeout, t.KillAfter = noonCET.Add(48*time.Second), 30*time.Second, jobs.NewSpec("").KillAfter
	t.Backoff = jobs.Backoff{Strategy: jobs.BackoffExponential, Delay: 24 * time.Second, Max: time.Hour}
	t.MaxLosses, t.OutputLimit = jobs.NewSpec("").MaxLosses, jobs.NewSpec("").OutputLimit
	attempt := func(n int, started, lasted time.Duration) admin.Attempt {
		return admin.Attempt{TaskID: t.ID, Number: n, State: jobs.Failed, Reason: jobs.ReasonExit, ExitCode: &code, Worker: "web1:811",
			Counted: true, StartedAt: noonCET.Add(-started), Duration: lasted, OutputBytes: 118}
	}
	return ui.Task{Task: t, Now: noonCET, Why: "waits for its next attempt at 14:12:03 (backoff 48s)",
		Tail:     []string{"curl: (22) The requested URL returned error: 503"},
		Attempts: []admin.Attempt{attempt(1, 28*time.Second, 2*time.Second), attempt(2, 2*time.Second, 2100*time.Millisecond)}}
}

func TestShowLooksLikeSample(t *testing.T) {
	testkit.SetZone(t, "Europe/Berlin")
	p, out, stderr := termtest.Printer(80)
	s := sampleTask()
	s.Draw(p)
	p.Flush()
	if want := `task 1040   retrying   attempt 2 of 3 failed, next in 48s
  command   curl -fsS https://example.com/hook
  path      /usr/bin/curl
  cwd       /srv/app
  queue     default
  priority  5
  options   max attempts 3, timeout 30s, backoff delay 24s, env TOKEN=•••
  created   2026-01-31 14:02:11 (9m ago) by ann
  why       waits for its next attempt at 14:12:03 (backoff 48s)

  TRY  STARTED   TIME  RESULT   WORKER    OUTPUT
    1  14:10:47  2.0s  exit 22  web1:811   118 B
    2  14:11:13  2.1s  exit 22  web1:811   118 B

  curl: (22) The requested URL returned error: 503
`; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if want := "  logs: runner logs 1040     now: runner retry 1040     stop: runner cancel 1040\n"; stderr.String() != want {
		t.Errorf("stderr: got %q, want %q", stderr, want)
	}
	s.Reveal = true
	p, out, _ = termtest.Printer(40)
	s.Draw(p)
	p.Flush()
	testkit.Contains(t, out.String(), "TOKEN=s3cret", "\n  path      /usr/bin/curl\n  cwd       /srv/app\n  queue     default\n")
}

func TestShowDrawsProgressAndStepsOfFunction(t *testing.T) {
	testkit.SetZone(t, "Europe/Berlin")
	s := sampleTask()
	s.Task.Job, s.Tail, s.Attempts = "order", nil, nil
	for i := range 21 {
		s.Steps = append(s.Steps, admin.Step{Name: fmt.Sprint("page ", i), At: noonCET.Add(-time.Hour), Value: []byte(`{"n": 1}`)})
	}
	s.Steps = append(s.Steps, admin.Step{Name: "night", At: noonCET.Add(-3 * time.Minute), WakeAt: noonCET.Add(-time.Minute)},
		admin.Step{Name: "cool off", At: noonCET.Add(-time.Minute), WakeAt: noonCET.Add(time.Hour)})
	s.Task.Progress = &jobs.Progress{Done: 21, Total: 40, Text: "reads page 21"}
	p, out, _ := termtest.Printer(80)
	s.Draw(p)
	p.Flush()
	for _, want := range []string{"\n  progress  21/40: reads page 21\n",
		"\n  3 steps before: runner show 1040 --json\n  STEP      AT", "\n  page 3    13:11:15  {\"n\":1}\n",
		"\n  night     14:08:15  slept until 14:10:15\n  cool off  14:10:15  sleeps until 15:11:15\n"} {
		testkit.Contains(t, out.String(), want)
	}
	testkit.Contains(t, jsonLine(t, s.Record()),
		`{"name":"night","generation_id":0,"at":"2026-01-31T13:08:15.000Z","wake_at":"2026-01-31T13:10:15.000Z","value":null}`)
}

// TestShowEscapesControlCharacters checks that text from other users, such as
// names and output, does not control the terminal.
func TestShowEscapesControlCharacters(t *testing.T) {
	testkit.SetZone(t, "Europe/Berlin")
	s := sampleTask()
	evil := "\x1b]0;x\a\u202e\xff"
	s.Task.Label, s.Task.Cwd, s.Task.CreatedBy, s.Task.UniqueKey, s.Task.EnvFile, s.Task.Worker = evil, evil, evil, evil, evil, evil
	s.Task.Env, s.Task.Path, s.Task.Queue = map[string]string{evil: evil}, evil, evil
	s.Task.Reason, s.Task.Error, s.Task.Result = jobs.ReasonPanic, evil+"\n\tat\n"+evil, []byte(`"`+evil+`"`)
	s.Attempts[0].Worker, s.Tail, s.Input, s.Reveal, s.Why = evil, []string{evil}, []byte(evil), true, evil
	p, out, _ := termtest.Printer(60)
	s.Draw(p)
	p.Flush()
	for line := range strings.Lines(out.String()) {
		if line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", ""); strings.ContainsFunc(line, humanize.IsControl) {
			t.Errorf("got %q, want no control characters", line)
		}
	}
}

func TestShowListsProcessesThatOutliveTheirAttempt(t *testing.T) {
	testkit.SetZone(t, "Europe/Berlin")
	s := sampleTask()
	s.Outlived = []orphans.Process{{PID: 4242, Name: "sudo", State: "S", UID: 0, Unawaited: true}}
	p, out, _ := termtest.Printer(80)
	s.Draw(p)
	p.Flush()
	if want := "\n  outlived  by process 4242 (sudo, state S, user 0)\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got\n%s\nwant a line %q", out, want)
	}
	p, out, _ = termtest.Printer(80)
	if err := p.Record(s.Record()); err != nil {
		t.Fatal(err)
	}
	p.Flush()
	if want := `"outlived":[{"pid":4242,"name":"sudo","state":"S","uid":0}]`; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", out, want)
	}
}
