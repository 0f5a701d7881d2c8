package runner

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// TestATaskWithOptionsOfANewerVersionIsPutOff checks that a worker does not execute a task with unknown options, and keeps the options. A
// worker of a newer version can still take the task.
func TestATaskWithOptionsOfANewerVersionIsPutOff(t *testing.T) {
	fake(t, Options{}, nil, func(b *bubble) {
		spec := work.With("x")
		spec.Unknown = map[string]json.RawMessage{"gpu": json.RawMessage("2")}
		id := b.enqueue(spec)
		b.work(150 * time.Second)
		b.ran()
		task := b.want(id, jobs.Scheduled, "")
		if task.Attempt != 0 || !strings.Contains(task.Error, "unknown option gpu: a newer version") || string(task.Unknown["gpu"]) != "2" {
			b.Errorf("got %+v, want no attempt, an error that names the option, and the option as it was", task)
		}
	})
}
