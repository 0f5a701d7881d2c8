package ui

import (
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// TestCauseHasNoIDs: with their ids, tasks that failed for the same reason
// would each be a group of their own.
func TestCauseHasNoIDs(t *testing.T) {
	for line, want := range map[string]string{
		"503 Service Unavailable (request id 9f0a9b0)":        "# Service Unavailable (request id #)",
		"503 Service Unavailable (request id deadbee)":        "# Service Unavailable (request id #)",
		"checkout a1b2c failed":                               "checkout # failed",
		"bucket us-east-1 rejects key AKIA4XYZ_9":             "bucket us-east-# rejects key #",
		"550 no such recipient: <ann.o+x@mail.example.com>":   "# no such recipient: <#>",
		"550 no such recipient: <bob@mail2.example.com>":      "# no such recipient: <#>",
		`exec: "pg_dump": executable file not found in $PATH`: `exec: "pg_dump": executable file not found in $PATH`,
		"http2 on i386: v2 of TLS1.3 refused after 12s":       "# on i#: v# of TLS#.# refused after #",
		"dial tcp 10.0.0.7:5432: connect: connection refused": "dial tcp #: connect: connection refused",
		"open /srv/a/b.txt: no such file":                     "open #: no such file",
		"https://ann@example.com/x?y=1 gave 500":              "https:##?y=# gave #",
		"Ünïcode naïve façade 3.5 GiB":                        "Ünïcode naïve façade # GiB",
	} {
		if got := causeOf(line); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

func TestFailuresAreGroupedByTheirCause(t *testing.T) {
	one, two := 1, 2
	task := func(id int64, code *int, queue, line string) jobs.Task {
		t := jobs.Task{ID: id, State: jobs.Failed, Reason: jobs.ReasonExit, ExitCode: code, ErrorLine: line,
			FinishedAt: time.Unix(100-id, 0)}
		t.Job, t.Queue = command.Job, queue
		return t
	}
	groups := GroupFailures([]jobs.Task{
		task(1, &one, "mail", "535 authentication failed for user 17"),
		task(2, &two, "mail", "535 authentication failed for user 18"),
		task(3, &one, "bulk", "535 authentication failed for user 9"),
		task(4, &one, "mail", "open /srv/a/b.txt: no such file"),
		task(5, &one, "mail", "open /tmp/other: no such file"),
		task(6, &one, "mail", "open ./x/1: no such file"),
		task(7, &two, "mail", "request 0199f3a2-7b1c-7def-8123-0123456789ab failed"),
		task(8, &two, "mail", "request deadbeef01 failed"),
	})
	want := [][]int64{{4, 5, 6}, {1, 3}, {7, 8}, {2}}
	if len(groups) != len(want) {
		t.Fatalf("got groups %+v, want ids %v", groups, want)
	}
	for i, g := range groups {
		if len(g.IDs) != len(want[i]) || g.IDs[0] != want[i][0] {
			t.Errorf("group %d: got tasks %v, want %v", i, g.IDs, want[i])
		}
	}
	if g := groups[1]; len(g.Queues) != 2 || !g.Last.Equal(time.Unix(99, 0)) || !g.First.Equal(time.Unix(97, 0)) ||
		g.Line != "535 authentication failed for user 17" {
		t.Errorf("got %+v; want 2 queues, the line of the latest failure, and the times of tasks 1 and 3", g)
	}
}
