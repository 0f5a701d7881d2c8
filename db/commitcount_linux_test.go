package db

import (
	"sync"
	"testing"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/jobs"
)

// TestCommitsOfOthersAreCountedBesideTheWritersOwn opens one file twice, in place of two processes.
func TestCommitsOfOthersAreCountedBesideTheWritersOwn(t *testing.T) {
	d := openTest(t)
	other, err := Open(t.Context(), d.Path(), Options{Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, before, ok := d.engine.(*sqlite.File).Commits()
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
	if _, after, _ := d.engine.(*sqlite.File).Commits(); after-before != writes {
		t.Errorf("%d commits of others, want %d", after-before, writes)
	}

	w, err := d.Register(t.Context(), WorkerInfo{ID: NewWorkerID(), Name: "w", Lease: time.Minute, StartedAt: now()},
		[]ClaimJob{{Job: jobs.CommandJob, MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	news := make(chan bool, 1000)
	if err := d.Watch(t.Context(), 0, func(is bool) { news <- is }); err != nil {
		t.Fatal(err)
	}
	insert(d, 1)
	if <-news {
		t.Error("the writer's own task is news")
	}
	for _, n := range []int{1, 3} { // the second round completes two tasks with one statement, and one with another
		turned, err := w.Cycle(t.Context(), Cycle{Now: now(), Claim: Claim{Free: n, Lease: time.Minute}})
		if err != nil || len(turned.Claimed) != n {
			t.Fatalf("got %+v, %v; want no error, len(turned.Claimed) = n", turned, err)
		}
		if <-news {
			t.Error("a claim of the writer is news")
		}
		turn := Cycle{Now: now()}
		for _, task := range turned.Claimed {
			turn.Finish = append(turn.Finish, Finish{Task: task, Outcome: jobs.Outcome{Started: now(), Finished: now(), ExitCode: new(0)}})
		}
		if _, err := w.Cycle(t.Context(), turn); err != nil {
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
