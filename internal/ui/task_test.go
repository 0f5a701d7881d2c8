package ui_test

import (
	"testing"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// noon is the current time in these tests: 14:11:15 in Berlin.
var noon = time.Date(2026, 1, 31, 13, 11, 15, 0, time.UTC)

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
		{jobs.Task{State: jobs.Running, Progress: &jobs.Progress{Done: 12, Total: 40, Text: "pages"}}, "12/40"},
		{jobs.Task{State: jobs.Running, Progress: &jobs.Progress{Text: "pages"}}, "pages"},
		{jobs.Task{State: jobs.Pending}, ""},
		{jobs.Task{State: jobs.Pending, Reason: jobs.ReasonLost, Losses: 2}, "lost 2"},
		{jobs.Task{State: jobs.Pending, Reason: jobs.ReasonShutdown}, "shutdown"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonExit, ExitCode: code(22)}, "exit 22"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonSignal, Signal: 9}, "signal 9"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonTimeout}, "timeout"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonPanic}, "panic"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonArgs}, "invalid args"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonLost, Losses: 4}, "lost 4"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonStart, ExitCode: code(127)}, "not found"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonStart, ExitCode: code(126)}, "not started"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonExpired, Error: "not started in time"}, "expired"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "by ann"}, "by ann"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "by ann: too: late"}, "by ann: too: late"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "no such customer\nat all"}, "no such customer"},
		{jobs.Task{State: jobs.Completed}, ""},
	} {
		testkit.Equal(t, "result", ui.Note(test.task, ui.Holds{}, noon), test.want)
	}
}

func TestProgress(t *testing.T) {
	for want, report := range map[string]*jobs.Progress{"": nil, "0": {}, "12": {Done: 12}, "12/40": {Done: 12, Total: 40},
		"pages": {Text: "pages"}, "12: pages": {Done: 12, Text: "pages"}, "12/40: pages": {Done: 12, Total: 40, Text: "pages"}} {
		testkit.Equal(t, "progress", ui.Progress(report), want)
	}
}

func TestHeadlines(t *testing.T) {
	code := 1
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	for _, test := range []struct {
		task jobs.Task
		want string
	}{
		{jobs.Task{State: jobs.Scheduled, RunAt: noon.Add(time.Hour)}, "starts in 1h"},
		{jobs.Task{State: jobs.Scheduled, RunAt: ago(time.Minute)}, "due 1m ago"},
		{jobs.Task{State: jobs.Pending, RunAt: ago(time.Minute)}, "due 1m ago"},
		{jobs.Task{State: jobs.Pending, RunAt: ago(time.Minute), Reason: jobs.ReasonLost}, "lost, due 1m ago"},
		{jobs.Task{State: jobs.Running, Attempt: 1, MaxAttempts: 2, StartedAt: ago(11 * time.Second)}, "attempt 1 of 2, for 11s"},
		{jobs.Task{State: jobs.Running, Attempt: 1, MaxAttempts: 1, StartedAt: ago(0), CancelRequestedAt: noon},
			"attempt 1 of 1, for 0ms, stopping"},
		{jobs.Task{State: jobs.Completed, StartedAt: ago(time.Hour), Duration: 142 * time.Millisecond, FinishedAt: ago(time.Hour)},
			"took 142ms, 1h ago"},
		{jobs.Task{State: jobs.Failed, Attempt: 3, MaxAttempts: 3, Reason: jobs.ReasonExit, ExitCode: &code, FinishedAt: ago(time.Hour)},
			"exit 1 in attempt 3 of 3, 1h ago"},
		{jobs.Task{State: jobs.Failed, Reason: jobs.ReasonLost, Losses: 4, FinishedAt: ago(time.Hour)}, "lost 4, 1h ago"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "by ann: late", FinishedAt: ago(time.Hour)},
			"by ann: late, 1h ago"},
		{jobs.Task{State: jobs.Cancelled, Reason: jobs.ReasonCancelled, Error: "gone", FinishedAt: ago(time.Hour)}, "gone, 1h ago"},
	} {
		if got := ui.Headline(test.task, noon); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
