package web_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestOpenPagesDoNotKeepWriteAheadLogFromBeingReused checks the size of the
// write-ahead log while pages and the output of a task are open. The test
// writes much more data than the log may hold. SQLite starts the log again at
// its beginning only when no reader uses it. If the pages held a snapshot of
// the database, the log would grow with every write.
func TestOpenPagesDoNotKeepWriteAheadLogFromBeingReused(t *testing.T) {
	r := open(t)
	dir := t.TempDir()
	id := shell(t, r, "i=0; while [ ! -e "+dir+"/go ]; do i=$((i+1)); echo line $i; sleep 0.02; done")
	stop := runnerkit.Work(t, r, web1)
	defer stop()
	defer touch(t, dir+"/go")
	testkit.Eventually(t, "the task runs", func() bool { return state(t, r, id) == jobs.Running })
	s := serve(t, r, webOptions)
	for range 10 { // receive events, as ten open pages do
		res, err := s.client.Do(s.request("GET", "/events", nil))
		testkit.NoError(t, err)
		defer res.Body.Close()
		go io.Copy(io.Discard, res.Body)
	}
	res, err := s.client.Do(s.request("GET", fmt.Sprintf("/tasks/%d/log?follow=1", id), nil))
	testkit.NoError(t, err)
	defer res.Body.Close()
	var lines atomic.Int64
	go func() {
		for s := bufio.NewScanner(res.Body); s.Scan(); {
			lines.Add(1)
		}
	}()
	more := func() { // waits for another line, to check that the output still arrives
		n := lines.Load()
		testkit.Eventually(t, "another line", func() bool { return lines.Load() > n })
	}

	const each, rounds = 500_000, 60
	large := jobs.Command(command.Shell(": "+strings.Repeat("x", each)), jobs.In(time.Hour))
	most := int64(0)
	for n := range rounds {
		runnerkit.Enqueue(t, r, large)
		_, wal := db.Of(r).Size()
		most = max(most, wal)
		if n%10 == 0 {
			more()
			for _, path := range []string{"/", "/tasks", fmt.Sprintf("/tasks/%d", id)} {
				s.page(path)
			}
		}
	}
	more()
	t.Logf("the log had up to %d bytes while %d were written", most, each*rounds)
	if most > each*rounds/2 {
		t.Errorf("the write-ahead log grew to %d bytes, want at most %d", most, each*rounds/2)
	}
}
