package runner_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// flashVariable is an environment variable that makes the test program a worker
// with Flash. Its value is the path of a database.
const flashVariable = "RUNNER_TEST_FLASH"

var (
	reading = jobs.Define[any]("reading", jobs.MaxLosses(1000))
	once    = jobs.Define[any]("once", jobs.AtMostOnce())
)

// recordRuns registers functions that append the ids of their tasks to a file.
func recordRuns(r *runner.Runner, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	record := func(ctx context.Context, _ any) error {
		task, _ := runner.TaskFromContext(ctx)
		_, err := fmt.Fprintln(file, task.ID)
		return err
	}
	r.Register(reading.Handler(record), once.Handler(record))
	return nil
}

// flashProgram runs a worker, and enqueues tasks without a pause. It prints
// "added ID" when a task is confirmed, and "ended ID GENERATION" when another
// connection can see that the task has completed.
func flashProgram(path string, _ []string) error {
	ctx := context.Background()
	r, err := runner.Open(ctx, path, runner.Options{Sync: runner.SyncFlash, WriteEvery: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	if err := recordRuns(r, path+".runs"); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- r.Work(ctx, runner.WorkOptions{Concurrency: 8}) }()
	ended := map[int64]bool{}
	for i := 0; len(failed) == 0; i++ {
		spec := reading.With(nil)
		if i%5 == 0 {
			spec = once.With(nil)
		}
		task, err := r.Enqueue(ctx, spec)
		if err != nil {
			return err
		}
		fmt.Println("added", task.ID)
		tasks, err := r.List(ctx, jobs.Filter{States: []jobs.State{jobs.Completed}})
		if err != nil {
			return err
		}
		for _, task := range tasks {
			if !ended[task.ID] {
				ended[task.ID] = true
				fmt.Println("ended", task.ID, task.GenerationID)
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	return <-failed
}

// TestKilledFlashWorkersLoseNoConfirmedTask kills a worker with Flash at random
// times. Each confirmed task must run. A task must not run again after its end
// was visible. Each repeated run must follow a loss, and a task that must not
// run twice has no repeated run.
func TestKilledFlashWorkersLoseNoConfirmedTask(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	self, err := os.Executable()
	testkit.NoError(t, err)
	added, ended := map[string]bool{}, map[string]string{} // ended maps the id of a task to its generation
	for range 10 {
		p := exec.Command(self)
		p.Env = append(os.Environ(), flashVariable+"="+path, "GORACE=atexit_sleep_ms=0")
		p.Stderr = os.Stderr
		out, err := p.StdoutPipe()
		testkit.NoError(t, err)
		testkit.NoError(t, p.Start())
		lines, most := bufio.NewScanner(out), 1+rand.IntN(200)
		for n := 0; lines.Scan(); n++ {
			if n == most {
				testkit.NoError(t, p.Process.Kill())
			}
			switch words := strings.Fields(lines.Text()); len(words) {
			case 2:
				added[words[1]] = true
			case 3:
				ended[words[1]] = words[2]
			}
		}
		_ = p.Wait()
	}
	r := runnerkit.OpenAt(t, path, runner.Options{})
	testkit.NoError(t, recordRuns(r, path+".runs"))
	runnerkit.Drain(t, r)
	text, err := os.ReadFile(path + ".runs")
	testkit.NoError(t, err)
	runs := map[string]int{}
	for id := range strings.FieldsSeq(string(text)) {
		runs[id]++
	}
	tasks, err := r.List(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	stored := map[string]jobs.Task{}
	again := 0
	for _, task := range tasks {
		id := fmt.Sprint(task.ID)
		stored[id] = task
		again += max(runs[id]-1, 0)
		if most := min(1+task.Losses, 1+task.MaxLosses); runs[id] > most {
			t.Errorf("task %s with %d losses of at most %d: got %d runs, want at most %d", id, task.Losses, task.MaxLosses, runs[id], most)
		}
	}
	for id := range added {
		task, found := stored[id]
		if completed := task.State == jobs.Completed && runs[id] > 0; !found || task.MaxLosses > 0 && !completed {
			t.Errorf("task %s was confirmed: got state %q and %d runs, want completed and at least one run", id, task.State, runs[id])
		}
	}
	for id, generation := range ended {
		testkit.Equal(t, "generation of task "+id+", whose end was visible", fmt.Sprint(stored[id].GenerationID), generation)
	}
	t.Logf("%d tasks were confirmed, %d ends were visible, and %d attempts were repeated", len(added), len(ended), again)
}
