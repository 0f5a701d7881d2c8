package db

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

var replaceKey = jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true})

func uniqueCommand(word string, options ...jobs.Option) jobs.Spec {
	options = append(options, replaceKey)
	return jobs.Command(commands.Command{Argv: []string{word}, Input: []byte(word)}, options...)
}

func TestReplaceChangesEverySettingOfTaskThatHasNotStarted(t *testing.T) {
	d := openTest(t)
	at := now()
	first := uniqueCommand("a", jobs.Label("old"), jobs.Timeout(time.Hour))
	second := jobs.Command(commands.Command{Argv: []string{"b"}, Path: "/bin/b", Dir: "/srv", Env: map[string]string{"A": "1"},
		EnvFile: "/e",
		Input:   []byte("in")},
		jobs.Queue("q"), jobs.Priority(-7), jobs.In(time.Hour), jobs.ExpiresIn(time.Minute), replaceKey, jobs.MaxAttempts(4),
		jobs.MaxLosses(2),
		func(s *jobs.Spec) { s.KillAfter = 0 }, jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffLinear, Delay: time.Second,
			Max: time.Hour}),
		func(s *jobs.Spec) { s.RetryOn = "75" },
		func(s *jobs.Spec) { s.OutputLimit = 9 })
	var before jobs.Enqueued
	// The task becomes pending, then scheduled. It stays scheduled, and then
	// becomes pending again.
	for i, spec := range []jobs.Spec{first, second, second, first} {
		later := at.Add(time.Duration(i) * time.Second)
		done, err := d.Insert(t.Context(), []jobs.Spec{spec}, later)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			before = done[0]
		} else if done[0] != (jobs.Enqueued{ID: before.ID, Replaced: true}) {
			t.Fatalf("insert %d: got %+v, want task %d replaced", i, done[0], before.ID)
		}
		tasks, err := d.List(t.Context(), jobs.Filter{})
		if err != nil || len(tasks) != 1 {
			t.Fatalf("insert %d: got tasks %+v and error %v, want one task", i, tasks, err)
		}
		want := taskspec.NewTask(&spec, later)
		want.ID, want.CreatedAt, want.GenerationID = before.ID, at.UTC(), []int64{1, 2, 2, 3}[i]
		want.UpdatedAt, want.RunAt = want.UpdatedAt.UTC(), want.RunAt.UTC()
		if !want.ExpiresAt.IsZero() {
			want.ExpiresAt = want.ExpiresAt.UTC()
		}
		if got := tasks[0]; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("insert %d:\n got %+v\nwant %+v", i, got, want)
		}
		if input, err := d.Input(t.Context(), before.ID); err != nil || string(input) != string(spec.Input) {
			t.Errorf("insert %d: got input %q and error %v, want %q", i, input, err, spec.Input)
		}
	}
}

func TestReplaceKeepsTaskThatHasStarted(t *testing.T) {
	d := openTest(t)
	if _, err := d.Insert(t.Context(), []jobs.Spec{uniqueCommand("a")}, now()); err != nil {
		t.Fatal(err)
	}
	w, err := d.Register(t.Context(), WorkerInfo{Name: "w", Lease: time.Minute, StartedAt: now()},
		[]ClaimJob{{Job: commands.Job, MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	result, err := w.Cycle(t.Context(), Cycle{Now: now(), Look: true, Claim: Claim{Free: 1, Lease: time.Minute}})
	if err != nil || len(result.Claimed) != 1 {
		t.Fatalf("got %d claims and error %v, want 1 claim", len(result.Claimed), err)
	}
	done, err := d.Insert(t.Context(), []jobs.Spec{uniqueCommand("b")}, now())
	if want := (jobs.Enqueued{ID: result.Claimed[0].ID, Kept: true}); err != nil || done[0] != want {
		t.Errorf("got %+v and error %v, want %+v", done, err, want)
	}
	if input, err := d.Input(t.Context(), done[0].ID); err != nil || string(input) != "a" {
		t.Errorf("got input %q and error %v, want %q", input, err, "a")
	}
}

func TestConcurrentReplacesKeepOneTask(t *testing.T) {
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
			t.Errorf("enqueue %d: got task %d, want task %d as for the first", i, id, ids[0])
		}
	}
}
