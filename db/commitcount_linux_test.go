package db

import (
	"sync"
	"testing"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// TestCommitsOfOthersAreCountedApartFromOwnCommits opens a file twice, so that each handle sees the commits of the other as those of
// another process.
func TestCommitsOfOthersAreCountedApartFromOwnCommits(t *testing.T) {
	d := openTest(t)
	other, err := Open(t.Context(), d.Path(), Options{Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, before, ok := d.engine.(*sqlite.File).Commits()
	if !ok {
		t.Fatal("got no counter of commits, want one")
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
		t.Errorf("got %d commits of others, want %d", after-before, writes)
	}

	w, err := d.Register(t.Context(), WorkerInfo{ID: NewWorkerID(), Name: "w", Lease: time.Minute, StartedAt: now()},
		[]ClaimJob{{Job: jobs.CommandJob, MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	byOthers := make(chan bool, 1000)
	if err := d.Watch(t.Context(), 0, func(others bool) { byOthers <- others }); err != nil {
		t.Fatal(err)
	}
	wantOwn := func(what string) {
		t.Helper()
		if <-byOthers {
			t.Errorf("%s: got a commit of another process, want one of the writer", what)
		}
	}
	insert(d, 1)
	wantOwn("insert")
	for _, n := range []int{1, 3} { // the second round completes three tasks in one cycle
		result, err := w.Cycle(t.Context(), Cycle{Now: now(), Claim: Claim{Free: n, Lease: time.Minute}})
		if err != nil || len(result.Claimed) != n {
			t.Fatalf("got %d claims and error %v, want %d claims", len(result.Claimed), err, n)
		}
		wantOwn("claim")
		cycle := Cycle{Now: now()}
		for _, task := range result.Claimed {
			cycle.Finish = append(cycle.Finish, Finish{Task: task,
				Outcome: lifecycle.Outcome{Started: now(), Finished: now(), ExitCode: new(0)}})
		}
		if _, err := w.Cycle(t.Context(), cycle); err != nil {
			t.Fatal(err)
		}
		wantOwn("finish")
	}
	insert(other, 1)
	for {
		select {
		case others := <-byOthers:
			if others {
				return
			}
		case <-time.After(time.Minute):
			t.Fatal("got no notice of the other process's insert, want one")
		}
	}
}
