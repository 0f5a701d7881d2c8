package admin

import (
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// TestThePercentilesOfAWholePeriodWeighTheTasks checks that a sampled task has the weight of all tasks that it stands for. The first period
// has 10 tasks, each of an hour, and all are sampled. The second has 990 tasks, each of a second, and only two are sampled.
func TestThePercentilesOfAWholePeriodWeighTheTasks(t *testing.T) {
	hours, seconds := make([]time.Duration, 10), []time.Duration{time.Second, time.Second}
	for i := range hours {
		hours[i] = time.Hour
	}
	at := time.Unix(60, 0)
	whole := Whole([]TimeBucket{
		{At: at, Ended: map[jobs.State]int{jobs.Completed: 8, jobs.Failed: 2}, Sampled: 10, waits: hours, runs: hours},
		{At: at.Add(time.Minute), Ended: map[jobs.State]int{jobs.Completed: 990}, Sampled: 2, waits: seconds, runs: seconds},
	})
	for name, got := range map[string]time.Duration{"wait p50": whole.WaitP50, "wait p95": whole.WaitP95, "run p50": whole.RunP50,
		"run p95": whole.RunP95} {
		testkit.Equal(t, name, got, time.Second) // without weights, 10 of the 12 samples would make this an hour
	}
	testkit.Equal(t, "sampled tasks", whole.Sampled, 12)
	testkit.Equal(t, "completed tasks", whole.Ended[jobs.Completed], 998)
	testkit.Equal(t, "failed tasks", whole.Ended[jobs.Failed], 2)
	testkit.Equal(t, "start", whole.At, at)

	// The field Ended may be smaller than the number of tasks in the sample of a bucket. Each sampled task then has the weight 1.
	whole = Whole([]TimeBucket{
		{At: at, Ended: map[jobs.State]int{jobs.Completed: 1}, Sampled: 10, waits: hours, runs: hours},
		{At: at, Ended: map[jobs.State]int{jobs.Completed: 2}, Sampled: 2, waits: seconds, runs: seconds},
	})
	testkit.Equal(t, "run p50 of a period with fewer counted tasks", whole.RunP50, time.Hour)
}
