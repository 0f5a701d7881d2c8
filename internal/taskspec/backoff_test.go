package taskspec

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/runner/jobs"
)

var strategies = []jobs.BackoffStrategy{jobs.BackoffFixed, jobs.BackoffLinear, jobs.BackoffExponential, "", "unknown"}

func randomBackoff(t *rapid.T) jobs.Backoff {
	return jobs.Backoff{Strategy: rapid.SampledFrom(strategies).Draw(t, "strategy"),
		Delay: time.Duration(rapid.Int64().Draw(t, "delay")), Max: time.Duration(rapid.Int64().Draw(t, "max"))}
}

func TestBackoffIsNeverNegativeOrAboveItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, id, n := randomBackoff(t), rapid.Int64().Draw(t, "id"), rapid.Int().Draw(t, "n")
		got := Delay(b, id, n)
		if most := 1.1*float64(max(b.Max, 0)) + 1; got < 0 || float64(got) > most {
			t.Fatalf("%+v after attempt %d: got %v, want 0 to %v", b, n, got, time.Duration(min(most, math.MaxInt64/2)))
		}
	})
}

func TestBackoffIsWithinTenPercentOfStrategysDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := jobs.Backoff{Strategy: rapid.SampledFrom(strategies).Draw(t, "strategy"),
			Delay: time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "delay")),
			Max:   time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "max"))}
		id, n := rapid.Int64().Draw(t, "id"), rapid.IntRange(1, 2000).Draw(t, "n")
		var want float64
		switch b.Strategy {
		case jobs.BackoffFixed:
			want = float64(b.Delay)
		case jobs.BackoffLinear:
			want = float64(n) * float64(b.Delay)
		default:
			want = float64(b.Delay) * math.Pow(2, float64(min(n-1, 1000)))
		}
		want = min(want, float64(b.Max))
		if got := float64(Delay(b, id, n)); got < 0.9*want-1 || got > 1.1*want+1 {
			t.Fatalf("%+v after attempt %d: got %v, want %v ± 10 %%", b, n, time.Duration(got), time.Duration(want))
		}
	})
}

func TestBackoffGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := jobs.Backoff{Strategy: rapid.SampledFrom(strategies).Draw(t, "strategy"),
			Delay: time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "delay")), Max: MaxDelay}
		id, n := rapid.Int64().Draw(t, "id"), rapid.IntRange(1, 100).Draw(t, "n")
		// Without jitter, a later delay is not shorter than an earlier one.
		// Jitter changes both delays by up to 10 %, so the later one is at
		// least 0.9 / 1.1 of the earlier one.
		if a, z := Delay(b, id, n), Delay(b, id, n+rapid.IntRange(1, 100).Draw(t, "more")); float64(z) < float64(a)*0.9/1.1-1 {
			t.Fatalf("%+v: got %v after attempt %d and %v after a later one, want no shorter delay", b, a, n, z)
		}
	})
}

func TestBackoffIsRepeatableAndDiffersBetweenTasks(t *testing.T) {
	seen := map[time.Duration]bool{}
	for id := range int64(1000) {
		d := Delay(jobs.NewSpec("").Backoff, id, 1)
		if again := Delay(jobs.NewSpec("").Backoff, id, 1); again != d {
			t.Fatalf("task %d: got %v at the second call, want %v as at the first", id, again, d)
		}
		seen[d.Round(10*time.Millisecond)] = true
	}
	// The delays are between 9 s and 11 s. Rounded to 10 ms, 200 different
	// delays are possible.
	if len(seen) < 150 {
		t.Errorf("got %d different delays for 1000 tasks, want at least 150", len(seen))
	}
}

func TestDefaultBackoffAsDocumented(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 5: 160 * time.Second,
		10: time.Hour, 1 << 30: time.Hour} {
		if got := Delay(jobs.NewSpec("").Backoff, 42, n); got < want*9/10 || got > want*11/10 {
			t.Errorf("after attempt %d: got %v, want %v ± 10 %%", n, got, want)
		}
	}
	if d := Delay((jobs.Backoff{}), 1, 3); d != 0 {
		t.Errorf("the zero Backoff: got %v, want 0", d)
	}
}
