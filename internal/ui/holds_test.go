package ui

import (
	"slices"
	"testing"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

func TestAdvice(t *testing.T) {
	for _, test := range []struct {
		err *jobs.Error
		why []string
		try string
	}{
		{&jobs.Error{What: "no space", Hint: "free some space"}, nil, "free some space"},
		{&jobs.Error{Code: "unknown", Hint: "again"}, nil, "again"},
		{&jobs.Error{Code: errcode.NoTask}, nil, "runner list"},
		{&jobs.Error{Code: errcode.NoDatabase}, []string{"runner enqueue and runner work create it"}, "--db PATH, or RUNNER_DB"},
		{&jobs.Error{Code: errcode.LockTimeout}, []string{"exit status 75 means it is safe to try again"}, ""},
		{&jobs.Error{Code: errcode.IsDirectory, Subject: "/srv"}, nil, "--db /srv/runner.db"},
		{&jobs.Error{Code: errcode.BackupDirectory, Subject: "/srv"}, nil, "runner backup /srv/runner.db"},
		{&jobs.Error{Code: errcode.ExposedDatabase, Hint: "chmod o-w x.db"}, nil, "chmod o-w x.db      or allow it: --insecure-perms"},
		{&jobs.Error{Code: errcode.UniqueKeyHolder, Subject: "7"}, nil, "runner cancel 7"},
	} {
		why, try := Advice(test.err)
		if !slices.Equal(why, test.why) || try != test.try {
			t.Errorf("%s: got %q and %q, want %q and %q", test.err.Code, why, try, test.why, test.try)
		}
	}
}

func TestProblems(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	queues := []admin.QueueStatus{{Name: "media", Counts: map[jobs.State]int{jobs.Pending: 2},
		Jobs: map[string]int{"email.send": 2}, Failed: 1}, {Name: "empty"}}
	worker := admin.Worker{Name: "web1:8", Jobs: []string{"command"}, State: "ready"}
	for name, test := range map[string]struct {
		workers []admin.Worker
		pauses  admin.PauseMap
		want    []Problem
	}{
		"no worker": {nil, nil, []Problem{{"no_worker", "no worker runs, and 2 tasks are unfinished", "runner work", ""},
			{"failed", "1 task failed in media in 24h", "runner list -q media -s failed --since 1d", "media"}}},
		"no job": {[]admin.Worker{worker}, nil, []Problem{
			{"failed", "1 task failed in media in 24h", "runner list -q media -s failed --since 1d", "media"},
			{"no_job", "no worker of queue media has job email.send, and 2 tasks wait",
				"runner list -q media -j email.send -s pending", "media"}}},
		"all paused": {[]admin.Worker{worker}, admin.PauseMap{admin.AllQueues: {At: now.Add(-time.Hour)}, "media": {At: now}},
			[]Problem{
				{"failed", "1 task failed in media in 24h", "runner list -q media -s failed --since 1d", "media"},
				{"no_job", "no worker of queue media has job email.send, and 2 tasks wait",
					"runner list -q media -j email.send -s pending", "media"},
				{"paused", "all queues have been paused for 1h with 2 tasks waiting", "runner resume --all", ""}}},
		"paused": {[]admin.Worker{worker},
			admin.PauseMap{"empty": {At: now}, "media": {At: now.Add(-time.Hour), Reason: "disk is full"}},
			[]Problem{
				{"failed", "1 task failed in media in 24h", "runner list -q media -s failed --since 1d", "media"},
				{"no_job", "no worker of queue media has job email.send, and 2 tasks wait",
					"runner list -q media -j email.send -s pending", "media"},
				{"paused", "media has been paused for 1h with 2 tasks waiting: disk is full", "runner resume -q media", "media"},
				{"paused", "empty has been paused for 0s with 0 tasks waiting", "runner resume -q empty", "empty"}}},
	} {
		s := Status{Queues: queues, Workers: test.workers, Now: now}
		s.Holds.Pauses = test.pauses
		s.FindProblems()
		got := s.Problems
		testkit.Equal(t, name+": result", got[:len(test.want)], test.want)
		if len(got) < len(test.want) {
			t.Errorf("%s: got problems %+v, want first %+v", name, got, test.want)
		}
	}
}
