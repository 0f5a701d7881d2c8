package term

import (
	"math"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
)

func TestProgressLineFitsTheTerminal(t *testing.T) {
	half := Progress{Done: 7_440, Failed: 17, Total: 12_000, PerSecond: 212}
	for _, test := range []struct {
		width int
		w     Progress
		want  string
	}{
		{120, half, "  waiting  █████████████████████████░░░░░░░░░░░░░░░  62%  7,440/12,000  212/s  ETA 22s  17 failed"},
		{80, half, "  waiting  ██████████████░░░░░░░░  62%  7,440/12,000  212/s  ETA 22s  17 failed"},
		{40, half, "████░░░  62%  212/s  ETA 22s  17 failed"},
		{25, half, "█████░░░  62%  17 failed"},
		{120, Progress{Total: 3}, "  waiting  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  0%  0/3"},
		{40, Progress{Total: 3}, "  waiting  ░░░░░░░░░░░░░░░░░░░  0%  0/3"},
		{40, Progress{Done: 3, Total: 3, PerSecond: 0.25}, "  waiting  █████████  100%  3/3  15/min"},
		{40, Progress{Done: 999, Failed: 1_000, Total: 1_000, PerSecond: 0.001}, "███████████  99%  ETA 16m  1,000 failed"},
	} {
		got := test.w.Line("  waiting", test.width-1)
		if Cells(got) >= test.width {
			t.Errorf("%d columns: got %d cells, want fewer: %s", test.width, Cells(got), got)
		}
		testkit.Equal(t, "line", got, test.want)
	}
}

func TestProgressAsText(t *testing.T) {
	for _, test := range []struct {
		w    Progress
		want string
	}{
		{Progress{Total: 12}, "0 of 12 tasks ended (0%)"},
		{Progress{Done: 7_440, Total: 12_000, PerSecond: 212}, "7,440 of 12,000 tasks ended (62%), 212/s, ETA 22s"},
		{Progress{Done: 1_990, Failed: 2, Total: 2_000, PerSecond: 1.5}, "1,990 of 2,000 tasks ended (99%), 1.5/s, ETA 7s, 2 failed"},
		{Progress{Done: 1, Total: 2_000_000_000, PerSecond: 1e-9}, "1 of 2,000,000,000 tasks ended (0%), 6e-08/min, ETA 1000d"},
	} {
		testkit.Equal(t, "text", test.w.Text(), test.want)
	}
}

func TestMeterMeasuresTheLastMinute(t *testing.T) {
	var m Meter
	start := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	done := 5_000 // the first call only begins the measurement
	for _, test := range []struct {
		what  string
		after time.Duration // time since the previous call
		steps int
		want  float64
	}{
		{"first call", 0, 0, 0},
		{"no step yet", time.Second, 0, 0},
		{"ten steps per second", time.Second, 20, 10},
		{"ten steps per second", 28 * time.Second, 280, 10},
		{"ten steps per second", 30 * time.Second, 300, 10},
		{"a minute without a step", time.Minute, 0, 300.0 / 90},
		{"an hour without a step", time.Hour - 90*time.Second, 0, 300.0 / 3600},
		{"work goes on", 30 * time.Second, 300, 600.0 / (3600 + 30)},
		{"the look back still has the pause", 30 * time.Second, 300, 600.0 / (3600 + 30)},
		{"the pause is over", 30 * time.Second, 300, 10},
		{"the machine slept for an hour", time.Hour, 0, 300.0 / (3600 + 30)},
		{"slow tasks", time.Minute, 1, 301.0 / (3600 + 90)},
	} {
		start, done = start.Add(test.after), done+test.steps
		if got := m.PerSecond(start, done); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: got %v steps per second, want %v", test.what, got, test.want)
		}
	}
}
