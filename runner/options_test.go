package runner

import (
	"encoding/json"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// TestTaskWithOptionsOfNewerVersionIsPostponed checks that a worker does not
// run a task with options that it does not know, and does not change these
// options. A worker of a newer version can run the task later.
func TestTaskWithOptionsOfNewerVersionIsPostponed(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		spec := work.With("x")
		spec.Unknown = map[string]json.RawMessage{"gpu": json.RawMessage("2")}
		id := f.enqueue(spec)
		f.work(150 * time.Second)
		f.wantRuns()
		task := f.want(id, jobs.Scheduled, "")
		testkit.Equal(f.T, "attempt", task.Attempt, 0)
		testkit.Contains(f.T, task.Error, "unknown option gpu: a newer version")
		testkit.Equal(f.T, "option gpu", string(task.Unknown["gpu"]), "2")
	})
}
