package ui_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// noonCET is the current time in these tests.
var noonCET = time.Date(2026, 1, 31, 14, 11, 15, 0, time.FixedZone("CET", 3600))

// sampleTasks returns tasks in different states.
func sampleTasks() []jobs.Task {
	code := 22
	argv := func(words ...string) json.RawMessage { args, _ := usercode.Marshal(words); return args }
	before := func(d time.Duration) time.Time { return noonCET.Add(-d) }
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
			t.Args, t.RunAt = curl, noonCET.Add(47780*time.Millisecond)
			t.StartedAt, t.Duration = before(3*time.Second), 2100*time.Millisecond
			t.Reason, t.ExitCode = jobs.ReasonExit, &code
		}),
		task(1039, jobs.Pending, "media", 0, 5, 11*time.Minute, func(t *jobs.Task) {
			t.Args = argv("ffmpeg", "-i", "b.mov", "-c:v", "libx264", "b.mp4")
		}),
		task(1038, jobs.Scheduled, "default", 0, 1, 15*time.Minute, func(t *jobs.Task) {
			t.Args, t.Label, t.RunAt = argv("report.sh", "--days", "7"), "nightly", noonCET.Add(8*time.Hour)
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

// listText returns the list as it looks on a terminal with this number of
// columns.
func listText(columns int, tasks []jobs.Task, wide bool) string {
	p, out, _ := termtest.Printer(columns)
	_ = ui.TaskSheet(ui.Holds{}, noonCET, wide).Print(p, tasks) // Flush returns the error
	p.Flush()
	return out.String()
}

func TestListLooksLikeSample(t *testing.T) {
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
		if got := listText(columns, sampleTasks(), false); got != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", columns, got, want)
		}
	}
}

func TestListShowsPriorityOnlyIfOneIsNotDefault(t *testing.T) {
	tasks := sampleTasks()[:3]
	text := listText(120, tasks, false)
	testkit.ContainsNone(t, text, "PRI")
	testkit.ContainsNone(t, text, "WORKER")
	text = listText(40, tasks, true)
	testkit.Contains(t, text, "PRI", "web1:811", "b.mp4")
	tasks[1].Priority = 7
	text = listText(120, tasks, false)
	testkit.Contains(t, text, "  PRI  TRY", "    7  2/3")
}

// TestListDropsColumnsInOrder prints the table with smaller and smaller widths,
// and checks that columns disappear in a fixed order. A column that has
// disappeared must not come back.
func TestListDropsColumnsInOrder(t *testing.T) {
	tasks := sampleTasks()
	tasks[1].Priority = 7
	gone := ""
	for columns := 140; columns >= 20; columns-- {
		header, _, _ := strings.Cut(listText(columns, tasks, false), "\n")
		for _, name := range []string{"PRI", "TRY", "QUEUE", "AGE", "TIME", "NOTE"} {
			if !strings.Contains(header, name) && !strings.Contains(gone, name) {
				gone += name + " "
			}
		}
		for _, name := range []string{"ID", "STATE", "JOB"} {
			if !strings.Contains(header, name) {
				t.Fatalf("%d columns: got no column %s, want it always: %q", columns, name, header)
			}
		}
	}
	testkit.Equal(t, "order of the dropped columns", gone, "PRI TRY QUEUE AGE TIME NOTE ")
}

func TestListIsNeverWiderThanTerminal(t *testing.T) {
	tasks := sampleTasks()
	tasks[0].Args = json.RawMessage(`["映画を変換する","👩‍👩‍👧 家族.mov","\u001b]0;x\u0007","` +
		strings.Repeat("入力", 100) + `"]`)
	tasks[1].Label = strings.Repeat("🎬", 60)
	tasks[2].Queue = strings.Repeat("q", taskspec.MaxName)
	tasks[3].ID = math.MaxInt64
	tasks[4].State, tasks[4].Reason, tasks[4].Error = jobs.Cancelled, jobs.ReasonCancelled, "by "+strings.Repeat("名", 40)+": why"
	tasks[5].Progress, tasks[5].State = &jobs.Progress{Text: strings.Repeat("長い", 50)}, jobs.Running
	for n := range tasks {
		for _, columns := range []int{20, 40, 60, 80, 120, 200} {
			for line := range strings.Lines(listText(columns, tasks[:n+1], false)) {
				if line = strings.TrimSuffix(line, "\n"); ui.Cells(line) > columns || strings.ContainsFunc(line, humanize.IsControl) {
					t.Errorf("%d columns: got %d cells in %q, want at most %[1]d and no control characters",
						columns, ui.Cells(line), line)
				}
			}
		}
	}
}
