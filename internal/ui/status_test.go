package ui_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/internal/ui/termtest"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

// sampleStatus returns a status with two workers and several queues.
func sampleStatus() ui.Status {
	queue := func(name string, pending, scheduled, blocked, retrying, running, failed, done int, oldest time.Duration) admin.QueueStatus {
		q := admin.QueueStatus{Name: name, Counts: map[jobs.State]int{jobs.Pending: pending, jobs.Scheduled: scheduled,
			jobs.Blocked:  blocked,
			jobs.Retrying: retrying, jobs.Running: running}, Ended: map[jobs.State]int{jobs.Failed: failed, jobs.Completed: done},
			Failed: failed,
			Jobs:   map[string]int{"command": pending}}
		if oldest > 0 {
			q.Oldest = noonCET.Add(-oldest)
		}
		return q
	}
	s := ui.Status{Path: "/var/lib/runner/runner.db", DBSize: 84_000_000, Now: noonCET, Alive: 1, Busy: 2, Slots: 4,
		Queues: []admin.QueueStatus{queue("default", 3, 1, 0, 1, 1, 4, 1284, 11*time.Minute), queue("mail", 0, 0, 0, 0, 0, 0, 392, 0),
			queue("media", 118, 0, 2, 0, 1, 0, 77, 2*time.Hour+14*time.Minute)},
		Workers: []admin.Worker{{ID: "0199", Name: "web1:811", Slots: 4, Running: []int64{41, 42}, Jobs: []string{"command"},
			State: "ready", StartedAt: noonCET.Add(-6*24*time.Hour - time.Hour), BeatAt: noonCET.Add(-time.Second)}}}
	s.Queues[2].Pause = admin.Pause{At: noonCET.Add(-20 * time.Minute), By: "ann"}
	s.Holds.Pauses = admin.PauseMap{"media": s.Queues[2].Pause}
	s.Schedules = []jobs.Schedule{{Name: "backup", NextAt: noonCET.Add(8 * time.Hour)},
		{Name: "feed", NextAt: noonCET.Add(2 * time.Minute)},
		{Name: "report", PausedAt: noonCET.Add(-time.Hour)}}
	s.FindProblems()
	return s
}

// statusText returns the status as it looks on a terminal with this number of
// columns.
func statusText(columns int, s ui.Status) string {
	p, out, _ := termtest.Printer(columns)
	s.Draw(p)
	p.Flush()
	return out.String()
}

func TestStatusLooksLikeSample(t *testing.T) {
	for columns, want := range map[int]string{80: `● 1 worker, 2 of 4 slots busy
  /var/lib/runner/runner.db  84 MB

QUEUE    PENDING  SCHED  BLOCK  RETRY  RUN  FAILED 24H  DONE 24H  OLDEST
default        3      1      0      1    1           4     1,284     11m
mail           0      0      0      0    0           0       392       –
media        118      0      2      0    1           0        77   2h14m  paused

WORKER    SLOTS  QUEUES  UP    SEEN
web1:811    2/4  all     6d1h  1s ago

SCHEDULES  next feed in 2m · report paused
! 4 tasks failed in default in 24h   runner list -q default -s failed --since 1d
! media has been paused for 20m with 118 tasks waiting   runner resume -q media
`, 40: `● 1 worker, 2 of 4 slots busy
  /var/lib/runner/runner.db  84 MB

QUEUE    PENDING  RUN  FAILED 24H
default        3    1           4
mail           0    0           0
media        118    1           0

WORKER    SLOTS  QUEUES  UP    SEEN
web1:811    2/4  all     6d1h  1s ago

SCHEDULES  next feed in 2m · report
           paused
! 4 tasks failed in default in 24h
    runner list -q default -s failed
    --since 1d
! media has been paused for 20m with 118
  tasks waiting
    runner resume -q media
`} {
		if got := statusText(columns, sampleStatus()); got != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", columns, got, want)
		}
	}
}

func TestStatusIsNeverWiderThanTerminal(t *testing.T) {
	s := sampleStatus()
	s.Path = "/srv/映画/" + strings.Repeat("👩‍👩‍👧 家族/", 20) + "runner.db"
	s.Queues[0].Name, s.Queues[1].Counts[jobs.Scheduled], s.Queues[2].Counts[jobs.Pending] = strings.Repeat("q", taskspec.MaxName),
		math.MaxInt32,
		math.MaxInt32
	s.Workers[0].Name, s.Workers[0].Queues = strings.Repeat("働く\x1b", 30),
		[]jobs.QueueMax{{Name: "media", Max: 2}, {Name: strings.Repeat("q", 80)}}
	gone := s.Workers[0]
	gone.State, gone.BeatAt = "lost", noonCET.Add(-90*time.Second)
	s.Workers = append(s.Workers, gone)
	s.Queues[2].Pause = admin.Pause{At: noonCET.Add(-20 * time.Minute), By: "ann"}
	s.Holds.Pauses = admin.PauseMap{"media": s.Queues[2].Pause}
	s.FindProblems()
	for _, columns := range []int{20, 40, 60, 80, 120, 200} {
		text := statusText(columns, s)
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); ui.Cells(line) > columns || strings.ContainsFunc(line, humanize.IsControl) {
				t.Errorf("%d columns: got %d cells in %q, want at most %[1]d and no control characters", columns, ui.Cells(line), line)
			}
		}
		if columns >= 40 {
			testkit.Contains(t, text, "runner.db", "lost")
		}
	}
}
