package db

import (
	"slices"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

func TestSuspectsRunAlone(t *testing.T) {
	d := openTest(t)
	w, err := d.Register(t.Context(), WorkerInfo{}, []ClaimJob{{Job: "command", MaxAttempts: 1}, {Job: "other", MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	add := func(job string, losses, most, priority int) {
		err := d.update(t.Context(), normal, func(t *tx) error {
			_, err := t.exec(command(`INSERT INTO tasks (generation_id, queue, job,
			state, losses, max_losses, priority, run_at, created_at, updated_at)
				VALUES (1, 'default', ?1, 'pending', ?2, ?3, ?4, ?5, ?5, ?5)`), job,
				int64(losses), int64(most), int64(priority), now.UnixMilli())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add("command", 0, 3, 5)  // task 1 was never lost
	add("command", 1, 3, 5)  // task 2 has one loss; max_losses is 3
	add("other", 2, 3, 5)    // task 3 is a suspect
	add("command", 1, 1, 9)  // task 4 is a suspect of the highest priority
	add("nobody's", 2, 3, 9) // task 5 is a suspect, but no worker runs its job
	add("command", 0, 0, 4)  // task 6 must run at most once
	add("command", 0, 1, 4)  // task 7 was never lost; max_losses is 1
	wantClaims := func(at time.Time, free int, idle, look bool, want ...int64) {
		t.Helper()
		done, err := w.Cycle(t.Context(), Cycle{Now: at, Look: look, Claim: Claim{Free: free, Idle: idle, Lease: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int64, len(done.Claimed))
		for i, task := range done.Claimed {
			got[i] = task.ID
			if suspect := len(want) == 1 && (want[0] == 3 || want[0] == 4); taskspec.Suspect(task) != suspect {
				t.Errorf("task %d is a suspect: got %v, want %v", task.ID, taskspec.Suspect(task), suspect)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got claims %v, want %v", got, want)
		}
	}
	// Before a suspect has waited for suspectPatience, a busy worker still
	// claims a task. It claims a task that is not a suspect.
	wantClaims(now, 1, false, true, 1)
	wantClaims(now.Add(31*time.Second), 1, false, true) // after suspectPatience a busy worker claims nothing
	// an idle worker claims only one task: the suspect with the highest
	// priority
	wantClaims(now.Add(31*time.Second), 4, true, true, 4)
	wantClaims(now.Add(31*time.Second), 4, true, false, 3)      // in its next claim the idle worker claims the next suspect
	wantClaims(now.Add(31*time.Second), 4, true, true, 2, 6, 7) // a suspect of an unknown job does not block other tasks
	if s := (jobs.Task{Losses: 0, MaxLosses: 1}); taskspec.Suspect(s) {
		t.Error("a task without losses: got a suspect, want none")
	}
}
