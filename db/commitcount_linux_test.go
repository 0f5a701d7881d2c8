package db

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/jobs"
)

func TestACommitThatFailedHidesNoneOfOthers(t *testing.T) {
	var all atomic.Uint32
	var c commitCount
	c.open(&all)
	expect := func(when string, want uint32) {
		t.Helper()
		if _, others, ok := c.read(); !ok || others != want {
			t.Errorf("%s: %d commits of others, want %d", when, others, want)
		}
	}
	c.begin()
	expect("before the commit is seen", 0)
	all.Add(1)
	expect("when it is seen", 0)
	c.end(false)
	expect("after it", 0)
	all.Add(1)
	expect("another process has committed", 1)
	c.begin()
	c.end(true)
	all.Add(1)
	expect("the writer failed, and another process has committed", 2)
	c.begin()
	c.end(false) // nothing was written
	all.Add(1)
	expect("the writer had nothing to write, and another process has committed", 3)
	all.Store(0)
	c.begin()
	all.Add(1)
	c.end(false)
	if _, before, _ := c.read(); before != 0 {
		all.Add(1)
		if _, after, _ := c.read(); after != before+1 {
			t.Error("after the counter began anew a commit of others is not seen")
		}
	}
}

// Two databases on one file stand for two processes.
func TestCommitsOfOthersAreCountedBesideTheWritersOwn(t *testing.T) {
	d := openTest(t)
	other, err := Open(t.Context(), d.Path(), Options{Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, before, ok := d.commits.read()
	if !ok {
		t.Fatal("commits are not counted")
	}
	const writes = 100
	insert := func(d *DB, n int) {
		for range n {
			if _, err := d.Insert(t.Context(), []jobs.Spec{jobs.Command{Argv: []string{"true"}}.With()}, now()); err != nil {
				t.Error(err)
			}
		}
	}
	var all sync.WaitGroup
	all.Go(func() { insert(d, writes) })
	all.Go(func() { insert(other, writes) })
	all.Wait()
	if _, after, _ := d.commits.read(); after-before != writes {
		t.Errorf("%d commits of others, want %d", after-before, writes)
	}

	w, err := d.Register(t.Context(), WorkerInfo{ID: NewWorkerID(), Name: "w", Lease: time.Minute, StartedAt: now()}, []ClaimJob{{Job: jobs.CommandJob, MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	news := make(chan bool, 1000)
	if err := d.Watch(t.Context(), false, func(is bool) { news <- is }); err != nil {
		t.Fatal(err)
	}
	<-news // the first look
	insert(d, 1)
	if <-news {
		t.Error("the writer's own task is news")
	}
	for _, n := range []int{1, 3} { // the last one completes two tasks together, and one by itself
		turned, err := w.Turn(t.Context(), Turn{Now: now(), Claim: Claim{Free: n, Lease: time.Minute}})
		if err != nil || len(turned.Claimed) != n {
			t.Fatal(turned, err)
		}
		if <-news {
			t.Error("a claim of the writer is news")
		}
		turn := Turn{Now: now()}
		for _, task := range turned.Claimed {
			turn.Finish = append(turn.Finish, Finish{Task: task, Outcome: jobs.Outcome{Started: now(), Finished: now(), ExitCode: new(0)}})
		}
		if _, err := w.Turn(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
		if <-news {
			t.Error("an end by the writer is news")
		}
	}
	insert(other, 1)
	for {
		select {
		case is := <-news:
			if is {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the task of another process is not noticed")
		}
	}
}
