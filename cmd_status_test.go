package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/term"
	"example.com/runner/internal/term/termtest"
	"example.com/runner/internal/view"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// sampleStatus returns a status with two workers and several queues.
func sampleStatus() view.Status {
	queue := func(name string, pending, scheduled, blocked, retrying, running, failed, done int, oldest time.Duration) runner.Queue {
		q := runner.Queue{Queue: name, Counts: map[jobs.State]int{jobs.Pending: pending, jobs.Scheduled: scheduled, jobs.Blocked: blocked,
			jobs.Retrying: retrying, jobs.Running: running}, Ended: map[jobs.State]int{jobs.Failed: failed, jobs.Completed: done},
			Failed: failed,
			Jobs:   map[string]int{"command": pending}}
		if oldest > 0 {
			q.Oldest = noon.Add(-oldest)
		}
		return q
	}
	s := view.Status{Path: "/var/lib/runner/runner.db", DBSize: 84_000_000, Now: noon}
	s.Status = present.Status{Alive: 1, Busy: 2, Slots: 4,
		Queues: []runner.Queue{queue("default", 3, 1, 0, 1, 1, 4, 1284, 11*time.Minute), queue("mail", 0, 0, 0, 0, 0, 0, 392, 0),
			queue("media", 118, 0, 2, 0, 1, 0, 77, 2*time.Hour+14*time.Minute)},
		Workers: []runner.Worker{{ID: "0199", Name: "web1:811", Slots: 4, Running: []int64{41, 42}, Jobs: []string{"command"},
			Lease: time.Minute, StartedAt: noon.Add(-6*24*time.Hour - time.Hour), BeatAt: noon.Add(-time.Second)}}}
	s.Queues[2].Pause = runner.Pause{At: noon.Add(-20 * time.Minute), By: "ann"}
	s.Holds.Pauses = runner.Pauses{"media": s.Queues[2].Pause}
	s.Schedules = []jobs.Schedule{{Name: "backup", NextAt: noon.Add(8 * time.Hour)}, {Name: "feed", NextAt: noon.Add(2 * time.Minute)},
		{Name: "report", PausedAt: noon.Add(-time.Hour)}}
	s.Problems = present.Problems(s.Queues, s.Holds.Pauses, s.Workers, s.Schedules, noon)
	return s
}

func drawnStatus(columns int, s view.Status) string {
	p, out, _ := termtest.Printer(columns)
	s.Draw(p)
	p.Flush()
	return out.String()
}

func TestStatusLooksLikeTheSample(t *testing.T) {
	for columns, want := range map[int]string{80: `● 1 worker, 2 of 4 slots busy           /var/lib/runner/runner.db  84 MB

QUEUE    PENDING  SCHED  BLOCK  RETRY  RUN  FAILED 24H  DONE 24H  OLDEST
default        3      1      0      1    1           4     1,284     11m
mail           0      0      0      0    0           0       392       –
media        118      0      2      0    1           0        77   2h14m  paused

WORKER    SLOTS  QUEUES  UP  SEEN
web1:811    2/4  all     6d  1s ago

SCHEDULES  next feed in 2m · report paused
! media has been paused for 20m with 118 tasks waiting   runner resume media
! 4 tasks failed in default in 24h   runner list -q default -s failed --since 1d
`, 40: `● 1 worker, 2 of 4 slots busy
  /var/lib/runner/runner.db  84 MB

QUEUE    PENDING  RUN  FAILED 24H
default        3    1           4
mail           0    0           0
media        118    1           0

WORKER    SLOTS  QUEUES  UP  SEEN
web1:811    2/4  all     6d  1s ago

SCHEDULES  next feed in 2m · report
           paused
! media has been paused for 20m with 118
  tasks waiting
    runner resume media
! 4 tasks failed in default in 24h
    runner list -q default -s failed
    --since 1d
`} {
		if got := drawnStatus(columns, sampleStatus()); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", columns, got, want)
		}
	}
}

func TestStatusIsNeverWiderThanTheTerminal(t *testing.T) {
	s := sampleStatus()
	s.Path = "/srv/映画/" + strings.Repeat("👩‍👩‍👧 家族/", 20) + "runner.db"
	s.Queues[0].Queue, s.Queues[1].Counts[jobs.Scheduled], s.Queues[2].Counts[jobs.Pending] = strings.Repeat("q", jobs.MaxName),
		math.MaxInt32,
		math.MaxInt32
	s.Workers[0].Name, s.Workers[0].Queues = strings.Repeat("働く\x1b", 30),
		[]runner.QueueMax{{Queue: "media", Max: 2}, {Queue: strings.Repeat("q", 80)}}
	gone := s.Workers[0]
	gone.BeatAt = noon.Add(-90 * time.Second)
	s.Workers = append(s.Workers, gone)
	s.Queues[2].Pause = runner.Pause{At: noon.Add(-20 * time.Minute), By: "ann"}
	s.Holds.Pauses = runner.Pauses{"media": s.Queues[2].Pause}
	s.Problems = present.Problems(s.Queues, s.Holds.Pauses, s.Workers, s.Schedules, noon)
	for _, columns := range []int{20, 40, 60, 80, 120, 200} {
		text := drawnStatus(columns, s)
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); term.Cells(line) > columns || strings.ContainsFunc(line, humanize.IsControl) {
				t.Errorf("%d columns, %d cells: %q", columns, term.Cells(line), line)
			}
		}
		if columns >= 40 && (!strings.Contains(text, "runner.db") || !strings.Contains(text, "lost")) {
			t.Errorf("%d columns:\n%s", columns, text)
		}
	}
}

func TestProblems(t *testing.T) {
	worker := func(more func(*runner.Worker)) runner.Worker {
		w := runner.Worker{Name: "web1:811", Jobs: []string{"command"}, Lease: time.Minute, BeatAt: noon}
		more(&w)
		return w
	}
	command := worker(func(*runner.Worker) {})
	mail := worker(func(w *runner.Worker) { w.Queues = []runner.QueueMax{{Queue: "mail"}} })
	sender := worker(func(w *runner.Worker) { w.Jobs = []string{"email.send"} })
	lost := worker(func(w *runner.Worker) {
		w.Name, w.BeatAt, w.Running = "my web", noon.Add(-90*time.Second), []int64{7}
	})
	draining := worker(func(w *runner.Worker) { w.Draining = true })
	queue := func(name string, states map[jobs.State]int, byJob map[string]int) runner.Queue {
		return runner.Queue{Queue: name, Counts: states, Jobs: byJob}
	}
	waits := queue("mail", map[jobs.State]int{jobs.Pending: 3, jobs.Retrying: 1}, map[string]int{"command": 1, "email.send": 2})
	failed := runner.Queue{Queue: "media", Ended: map[jobs.State]int{jobs.Failed: 2, jobs.Completed: 9}, Failed: 1}
	again := runner.Queue{Queue: "media", Ended: map[jobs.State]int{jobs.Failed: 2, jobs.Completed: 9}} // the failed task has run again
	problem := func(code, message, try, about string) present.Problem {
		return present.Problem{Code: code, Message: message, Try: try, About: about}
	}
	for _, test := range []struct {
		queues  []runner.Queue
		workers []runner.Worker
		want    []present.Problem
	}{
		{nil, nil, nil},
		{[]runner.Queue{waits}, nil, []present.Problem{problem("no_worker", "no worker runs, and 4 tasks wait", "runner work", "")}},
		{[]runner.Queue{waits}, []runner.Worker{draining}, []present.Problem{problem("no_worker", "no worker runs, and 4 tasks wait",
			"runner work", "")}},
		{[]runner.Queue{queue("a", map[jobs.State]int{jobs.Running: 1}, nil)}, []runner.Worker{lost}, []present.Problem{
			problem("lost_worker", "worker my web has not been seen for 1m and holds 1 task", "runner list -s running --worker 'my web'",
				"my web"),
			problem("no_worker", "no worker runs, and 1 task waits", "runner work", "")}},
		{[]runner.Queue{queue("media", map[jobs.State]int{jobs.Pending: 118}, map[string]int{"command": 118})}, []runner.Worker{mail},
			[]present.Problem{problem("no_queue", "no worker serves queue media, and 118 tasks wait", "runner work -q media", "media")}},
		{[]runner.Queue{waits}, []runner.Worker{command}, []present.Problem{
			problem("no_job", "no worker of queue mail has job email.send, and 2 tasks wait",
				"runner list -q mail -j email.send -s pending",
				"mail")}},
		{[]runner.Queue{waits}, []runner.Worker{sender}, []present.Problem{
			problem("no_job", "no worker of queue mail has job command, and 1 task waits", "runner work -q mail", "mail")}},
		{[]runner.Queue{waits}, []runner.Worker{sender, mail}, nil},
		{[]runner.Queue{again}, []runner.Worker{command}, nil},
		{[]runner.Queue{failed}, []runner.Worker{command}, []present.Problem{
			problem("failed", "1 task failed in media in 24h", "runner list -q media -s failed --since 1d", "media")}},
	} {
		got := present.Problems(test.queues, nil, test.workers, nil, noon)
		if got == nil || len(got) != len(test.want) {
			t.Errorf("%+v, want %+v", got, test.want)
			continue
		}
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%+v, want %+v", got[i], test.want[i])
			}
		}
	}
}

// --follow draws the status at once and stops when its context ends.
func TestStatusFollows(t *testing.T) {
	r := testRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	p := termtest.To(80, writerFunc(func(data []byte) (int, error) { cancel(); return out.Write(data) }), io.Discard)
	if err := runStatus(ctx, r, p, statusOptions{follow: true}); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[H✗ no worker"; !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), want) != 1 ||
		!strings.HasSuffix(out.String(), "\x1b[K\n\x1b[J") {
		t.Errorf("got %q; want HasPrefix(out.String(), want), Count(out.String(), want) = 1, HasSuffix(out.String(), "+
			`"\x1b[K\n\x1b[J")`,
			out.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }

func TestStatusPlotsTheLastHour(t *testing.T) {
	s := sampleStatus()
	s.Trend = make([]admin.TimeBucket, view.TrendMinutes)
	s.Trend[0].Ended = map[jobs.State]int{jobs.Completed: 1}
	s.Trend[59].Ended = map[jobs.State]int{jobs.Completed: 80, jobs.Failed: 2}
	wide := drawnStatus(120, s)
	if !strings.Contains(wide, "completed ▁"+strings.Repeat(" ", 58)+"█ 81 in 1h\n") ||
		!strings.Contains(wide, "failed    "+strings.Repeat(" ", 59)+"█ 2 in 1h\n") {
		t.Errorf(`got %+v; want Contains(wide, "completed ▁"+Repeat(" ", 58)+"█ 81 in 1h\n"), Contains(wide, `+
			`"failed "+Repeat(" ", 59)+"█ 2 in 1h\n")`,
			wide)
	}
	for _, columns := range []int{20, 40, 60, 80, 120, 200} {
		for line := range strings.Lines(drawnStatus(columns, s)) {
			if line = strings.TrimSuffix(line, "\n"); term.Cells(line) > columns {
				t.Errorf("%d columns, %d cells: %q", columns, term.Cells(line), line)
			}
		}
	}
}
