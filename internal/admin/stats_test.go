package admin

import (
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
)

// TestThePercentilesOfAWholePeriodWeighTheTasks checks that a sampled task has the weight of all tasks that it stands for. In the first
// period, 10 tasks took an hour each, and all of them are sampled. In the second period, 990 tasks took a second each, and only two of them
// are sampled.
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
		testkit.Equal(t, name, got, time.Second) // without weights, each percentile would be an hour, like 10 of the 12 samples
	}
	testkit.Equal(t, "sampled tasks", whole.Sampled, 12)
	testkit.Equal(t, "completed tasks", whole.Ended[jobs.Completed], 998)
	testkit.Equal(t, "failed tasks", whole.Ended[jobs.Failed], 2)
	testkit.Equal(t, "start", whole.At, at)

	// A bucket may have more sampled tasks than the field Ended counts. Each sampled task then has the weight 1.
	whole = Whole([]TimeBucket{
		{At: at, Ended: map[jobs.State]int{jobs.Completed: 1}, Sampled: 10, waits: hours, runs: hours},
		{At: at, Ended: map[jobs.State]int{jobs.Completed: 2}, Sampled: 2, waits: seconds, runs: seconds},
	})
	testkit.Equal(t, "run p50 of a period with fewer counted tasks", whole.RunP50, time.Hour)
}
