package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/term"
	"example.com/runner/internal/term/termtest"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// noon is the current time of the samples: 14:11:15 in Berlin.
var noon = time.Date(2026, 1, 31, 13, 11, 15, 0, time.UTC)

// sampleTasks returns a task in each of several states.
func sampleTasks() []jobs.Task {
	code := 22
	argv := func(words ...string) json.RawMessage { args, _ := jobs.MarshalArgs(words); return args }
	before := func(d time.Duration) time.Time { return noon.Add(-d) }
	task := func(id int64, state jobs.State, queue string, attempt, most int, made time.Duration, more func(*jobs.Task)) jobs.Task {
		t := jobs.Task{ID: id, Job: "command", State: state, Queue: queue, Attempt: attempt, MaxAttempts: most, CreatedAt: before(made),
			Priority: 5}
		more(&t)
		return t
	}
	curl := argv("curl", "-fsS", "https://example.com/hook")
	return []jobs.Task{
		task(1042, jobs.Running, "default", 1, 1, 12*time.Second, func(t *jobs.Task) {
			t.Args, t.StartedAt, t.Worker = argv("backup.sh", "--full", "/srv"), before(11*time.Second), "web1:811"
		}),
		task(1040, jobs.Retrying, "default", 2, 3, 9*time.Minute, func(t *jobs.Task) {
			t.Args, t.RunAt, t.StartedAt, t.Duration = curl, noon.Add(47780*time.Millisecond), before(3*time.Second), 2100*time.Millisecond
			t.Reason, t.ExitCode = jobs.ReasonExit, &code
		}),
		task(1039, jobs.Pending, "media", 0, 5, 11*time.Minute, func(t *jobs.Task) {
			t.Args = argv("ffmpeg", "-i", "b.mov", "-c:v", "libx264", "b.mp4")
		}),
		task(1038, jobs.Scheduled, "default", 0, 1, 15*time.Minute, func(t *jobs.Task) {
			t.Args, t.Label, t.RunAt = argv("report.sh", "--days", "7"), "nightly", noon.Add(8*time.Hour)
		}),
		task(1037, jobs.Failed, "default", 3, 3, 31*time.Minute, func(t *jobs.Task) {
			t.Args, t.StartedAt, t.Duration, t.Reason, t.ExitCode = curl, before(time.Minute), 2100*time.Millisecond, jobs.ReasonExit, &code
		}),
		task(1036, jobs.Failed, "default", 1, 1, time.Hour, func(t *jobs.Task) {
			t.Args, t.StartedAt, t.Duration, t.Reason = argv("rsync", "-a", "/srv/", "nas:/srv/"), before(time.Hour), time.Hour,
				jobs.ReasonTimeout
		}),
		task(1034, jobs.Completed, "mail", 1, 8, 2*time.Hour, func(t *jobs.Task) {
			t.Job, t.Args, t.StartedAt, t.Duration = "email.send", json.RawMessage(`{"to":"ann@example.com"}`), before(time.Hour),
				142*time.Millisecond
		}),
	}
}

func drawn(columns int, tasks []jobs.Task, wide bool) string {
	p, out, _ := termtest.Printer(columns)
	p.Table(view.ListTable(tasks, runner.Holds{}, noon, wide))
	p.Flush()
	return out.String()
}

func TestListLooksLikeTheSample(t *testing.T) {
	for columns, want := range map[int]string{80: `  ID  STATE      QUEUE    TRY  AGE   TIME  NOTE     JOB
1042  running    default  1/1  12s    11s           backup.sh --full /srv
1040  retrying   default  2/3   9m         in 48s   curl -fsS https://example.c…
1039  pending    media    0/5  11m                  ffmpeg -i b.mov -c:v libx26…
1038  scheduled  default  0/1  15m         in 8h    nightly: report.sh --days 7
1037  failed     default  3/3  31m   2.1s  exit 22  curl -fsS https://example.c…
1036  failed     default  1/1   1h   1h0m  timeout  rsync -a /srv/ nas:/srv/
1034  completed  mail     1/8   2h  142ms           email.send {"to":"ann@examp…
`, 40: `  ID  STATE      JOB
1042  running    backup.sh --full /srv
1040  retrying   curl -fsS https://exam…
1039  pending    ffmpeg -i b.mov -c:v l…
1038  scheduled  nightly: report.sh --d…
1037  failed     curl -fsS https://exam…
1036  failed     rsync -a /srv/ nas:/sr…
1034  completed  email.send {"to":"ann@…
`} {
		if got := drawn(columns, sampleTasks(), false); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", columns, got, want)
		}
	}
}

func TestListShowsPriorityWhereItIsSpecial(t *testing.T) {
	tasks := sampleTasks()[:3]
	if text := drawn(120, tasks, false); strings.Contains(text, "PRI") || strings.Contains(text, "WORKER") {
		t.Errorf(`got %+v; want not Contains(text, "PRI"), not Contains(text, "WORKER")`, text)
	}
	if text := drawn(40, tasks, true); !strings.Contains(text, "PRI") || !strings.Contains(text, "web1:811") ||
		!strings.Contains(text, "b.mp4") {
		t.Errorf(`got %+v; want Contains(text, "PRI"), Contains(text, "web1:811"), Contains(text, "b.mp4")`, text)
	}
	tasks[1].Priority = 7
	if text := drawn(120, tasks, false); !strings.Contains(text, "  PRI  TRY") || !strings.Contains(text, "    7  2/3") {
		t.Errorf(`got %+v; want Contains(text, " PRI TRY"), Contains(text, " 7 2/3")`, text)
	}
}

// Columns are dropped in a fixed order. Each narrower table has the columns of the wider one, or fewer.
func TestListColumnsLeaveInOrder(t *testing.T) {
	tasks := sampleTasks()
	tasks[1].Priority = 7
	gone := ""
	for columns := 140; columns >= 20; columns-- {
		header, _, _ := strings.Cut(drawn(columns, tasks, false), "\n")
		for _, name := range []string{"PRI", "TRY", "QUEUE", "AGE", "TIME", "NOTE"} {
			if !strings.Contains(header, name) && !strings.Contains(gone, name) {
				gone += name + " "
			}
		}
		for _, name := range []string{"ID", "STATE", "JOB"} {
			if !strings.Contains(header, name) {
				t.Fatalf("%d columns: %s has left: %q", columns, name, header)
			}
		}
	}
	if gone != "PRI TRY QUEUE AGE TIME NOTE " {
		t.Errorf("left in the order %s", gone)
	}
}

func TestListIsNeverWiderThanTheTerminal(t *testing.T) {
	tasks := sampleTasks()
	tasks[0].Args = json.RawMessage(`["映画を変換する","👩‍👩‍👧 家族.mov","\u001b]0;x\u0007","` + strings.Repeat("入力", 100) + `"]`)
	tasks[1].Label = strings.Repeat("🎬", 60)
	tasks[2].Queue = strings.Repeat("q", jobs.MaxName)
	tasks[3].ID = math.MaxInt64
	tasks[4].State, tasks[4].Reason, tasks[4].Error = jobs.Cancelled, jobs.ReasonCancelled, "by "+strings.Repeat("名", 40)+": why"
	tasks[5].Progress, tasks[5].State = json.RawMessage(`{"text":"`+strings.Repeat("長い", 50)+`"}`), jobs.Running
	for n := range tasks {
		for _, columns := range []int{20, 40, 60, 80, 120, 200} {
			for line := range strings.Lines(drawn(columns, tasks[:n+1], false)) {
				if line = strings.TrimSuffix(line, "\n"); term.Cells(line) > columns || strings.ContainsFunc(line, humanize.IsControl) {
					t.Errorf("%d columns, %d cells: %q", columns, term.Cells(line), line)
				}
			}
		}
	}
}

func TestNotes(t *testing.T) {
	code := func(n int) *int { return &n }
	at := noon.Add
	for _, test := range []struct {
		task jobs.Task
		want string
	}{
		{jobs.Task{State: jobs.Scheduled, RunAt: at(8 * time.Hour)}, "in 8h"},
		{jobs.Task{State: jobs.Scheduled, RunAt: at(300 * time.Millisecond)}, "in 1s"},
		{jobs.Task{State: jobs.Scheduled, RunAt: at(-time.Second)}, "due"},
		{jobs.Task{State: jobs.Retrying, RunAt: at(47780 * time.Millisecond), Reason: jobs.ReasonExit, ExitCode: code(2)}, "in 48s"},
		{jobs.Task{State: jobs.Running}, ""},
		{jobs.Task{State: jobs.Running, CancelRequestedAt: at(-time.Second)}, "stopping"},
		{jobs.Task{State: jobs.Running, Progress: json.RawMessage(`{"done":12,"total":40,"text":"pages"}`)}, "12/40"},
		{jobs.Task{State: jobs.Running, Progress: json.RawMessage(`{"done":null,"total":null,"text":"pages"}`)}, "pages"},
		{jobs.Task{State: jobs.Pending}, ""},
		{jobs.Task{State: jobs.Pending, Reason: jobs.ReasonLost, Losses: 2}, "lost 2"},
		{jobs.Task{State: jobs.Pending, Reason: jobs.ReasonShutdown}, "shutdown"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonExit, ExitCode: code(22)}, "exit 22"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonSignal, Signal: 9}, "signal 9"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonTimeout}, "timeout"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonPanic}, "panic"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonLost, Losses: 4}, "lost 4"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonStart, ExitCode: code(127)}, "not found"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonStart, ExitCode: code(126)}, "not started"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonExpired, Error: "not started in time"}, "expired"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "by ann"}, "by ann"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "by ann: too: late"}, "by ann: too: late"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "no such customer\nat all"}, "no such customer"},
		{jobs.Task{State: jobs.Completed}, ""},
	} {
		if got := present.Note(test.task, runner.Holds{}, noon); got != test.want {
			t.Errorf("%+v: %q, want %q", test.task, got, test.want)
		}
	}
}

// The pages of a list have no gaps and no duplicates in both directions, and the list ends after --rows tasks.
func TestListPages(t *testing.T) {
	r := testRunner(t)
	specs := make([]jobs.Spec, 2500)
	for i := range specs {
		specs[i] = jobs.Command{Argv: []string{"true"}}.With()
	}
	if _, err := r.Add(t.Context(), specs...); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rows   int
		oldest bool
		first  int64
		n      int
	}{{0, false, 2500, 2500}, {0, true, 1, 2500}, {1000, false, 2500, 1000}, {2001, true, 1, 2001}, {3000, false, 2500, 2500},
		{7, true, 1, 7}} {
		n, next, step := 0, test.first, int64(-1)
		if test.oldest {
			step = 1
		}
		err := eachTask(t.Context(), r, listOptions{rows: test.rows, oldest: test.oldest}, func(task jobs.Task) error {
			if task.ID != next {
				return fmt.Errorf("task %d, want %d", task.ID, next)
			}
			next += step
			n++
			return nil
		})
		if err != nil || n != test.n {
			t.Errorf("%+v: %d tasks, %v", test, n, err)
		}
	}
}

// testRunner returns a runner on an empty database.
func testRunner(t *testing.T) *runner.Runner {
	t.Helper()
	return runnerkit.Open(t, runner.Options{Sync: runner.Normal})
}
