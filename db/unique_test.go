package db

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"example.com/runner/jobs"
)

func uniqueCommand(word string, options ...jobs.Option) jobs.Spec {
	return jobs.Command{Argv: []string{word}, Input: []byte(word)}.With(append(options, jobs.UniqueReplace("k"))...)
}

func TestReplaceChangesEverySettingOfATaskThatHasNotStarted(t *testing.T) {
	d := openTest(t)
	at := now()
	first := uniqueCommand("a", jobs.Label("old"), jobs.Timeout(time.Hour))
	second := jobs.Command{Argv: []string{"b"}, Path: "/bin/b", Dir: "/srv", Env: map[string]string{"A": "1"}, EnvFile: "/e",
		Input: []byte("in")}.With(
		jobs.Queue("q"), jobs.Priority(-7), jobs.In(time.Hour), jobs.ExpiresIn(time.Minute), jobs.UniqueReplace("k"), jobs.MaxAttempts(4),
		jobs.MaxLosses(2),
		jobs.KillAfter(0), jobs.Retry(jobs.Backoff{Strategy: jobs.Linear, Delay: time.Second, Max: time.Hour}), jobs.RetryOn("75"),
		jobs.OutputLimit(9))
	var before Inserted
	for i, spec := range []jobs.Spec{first, second, second, first} { // the states are pending, scheduled, scheduled, pending
		later := at.Add(time.Duration(i) * time.Second)
		done, err := d.Insert(t.Context(), []jobs.Spec{spec}, later)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			before = done[0]
		} else if done[0] != (Inserted{ID: before.ID, Replaced: true}) {
			t.Fatalf("%d: got %+v; want done[0] = (Inserted{ID: before.ID, Replaced: true})", i, done[0])
		}
		tasks, err := d.List(t.Context(), jobs.Filter{}, Page{})
		if err != nil || len(tasks) != 1 {
			t.Fatalf("got %+v, %v; want no error, len(tasks) = 1", tasks, err)
		}
		want := spec.Task(later)
		want.ID, want.CreatedAt, want.GenerationID = before.ID, at.UTC(), []int64{1, 2, 2, 3}[i]
		want.UpdatedAt, want.RunAt = want.UpdatedAt.UTC(), want.RunAt.UTC()
		if !want.ExpiresAt.IsZero() {
			want.ExpiresAt = want.ExpiresAt.UTC()
		}
		if got := tasks[0]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%d:\n got %+v\nwant %+v", i, got, want)
		}
		if input, err := d.Input(t.Context(), before.ID); err != nil || string(input) != string(spec.Input) {
			t.Errorf("%d: input %q, %v", i, input, err)
		}
	}
}

func TestReplaceLeavesATaskThatHasStarted(t *testing.T) {
	d := openTest(t)
	if _, err := d.Insert(t.Context(), []jobs.Spec{uniqueCommand("a")}, now()); err != nil {
		t.Fatal(err)
	}
	w, err := d.Register(t.Context(), WorkerInfo{Name: "w", Lease: time.Minute, StartedAt: now()},
		[]ClaimJob{{Job: jobs.CommandJob, MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	turned, err := w.Cycle(t.Context(), Cycle{Now: now(), Look: true, Claim: Claim{Free: 1, Lease: time.Minute}})
	if err != nil || len(turned.Claimed) != 1 {
		t.Fatalf("got %+v, %v; want no error, len(turned.Claimed) = 1", turned, err)
	}
	done, err := d.Insert(t.Context(), []jobs.Spec{uniqueCommand("b")}, now())
	if err != nil || done[0] != (Inserted{ID: turned.Claimed[0].ID, Kept: true}) {
		t.Errorf("got %+v, %v; want no error, done[0] = (Inserted{ID: turned.Claimed[0].ID, Kept: true})", done, err)
	}
	if input, err := d.Input(t.Context(), done[0].ID); err != nil || string(input) != "a" {
		t.Errorf("input %q, %v", input, err)
	}
}

func TestAHundredReplaceEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	var all sync.WaitGroup
	ids := make([]int64, 100)
	for h := range 4 {
		d, err := Open(t.Context(), path, Options{Create: true, Normal: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for i := h; i < len(ids); i += 4 {
			all.Go(func() {
				done, err := d.Insert(t.Context(), []jobs.Spec{uniqueCommand("a", jobs.In(time.Duration(i)*time.Minute))}, now())
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = done[0].ID
			})
		}
	}
	all.Wait()
	for i, id := range ids {
		if id != ids[0] {
			t.Errorf("enqueue %d got task %d, the first %d", i, id, ids[0])
		}
	}
}
