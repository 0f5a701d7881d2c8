package jobs

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var strategies = []Strategy{Fixed, Linear, Exponential, "", "unknown"}

func randomBackoff(t *rapid.T) Backoff {
	return Backoff{Strategy: rapid.SampledFrom(strategies).Draw(t, "strategy"),
		Delay: time.Duration(rapid.Int64().Draw(t, "delay")), Max: time.Duration(rapid.Int64().Draw(t, "max"))}
}

func TestBackoffIsNeverNegativeOrAboveItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, id, n := randomBackoff(t), rapid.Int64().Draw(t, "id"), rapid.Int().Draw(t, "n")
		got := b.After(id, n)
		if most := 1.1*float64(max(b.Max, 0)) + 1; got < 0 || float64(got) > most {
			t.Fatalf("%+v after attempt %d: got %v, want 0 to %v", b, n, got, time.Duration(min(most, math.MaxInt64/2)))
		}
	})
}

func TestBackoffIsWithinTenPercentOfTheStrategysDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{Strategy: rapid.SampledFrom(strategies).Draw(t, "strategy"),
			Delay: time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "delay")),
			Max:   time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "max"))}
		id, n := rapid.Int64().Draw(t, "id"), rapid.IntRange(1, 2000).Draw(t, "n")
		var want float64
		switch b.Strategy {
		case Fixed:
			want = float64(b.Delay)
		case Linear:
			want = float64(n) * float64(b.Delay)
		default:
			want = float64(b.Delay) * math.Pow(2, float64(min(n-1, 1000)))
		}
		want = min(want, float64(b.Max))
		if got := float64(b.After(id, n)); got < 0.9*want-1 || got > 1.1*want+1 {
			t.Fatalf("%+v after attempt %d: got %v, want %v ± 10 %%", b, n, time.Duration(got), time.Duration(want))
		}
	})
}

func TestBackoffGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{rapid.SampledFrom(strategies).Draw(t, "strategy"),
			time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "delay")), MaxDelay}
		id, n := rapid.Int64().Draw(t, "id"), rapid.IntRange(1, 100).Draw(t, "n")
		// The jitter can make the later delay smaller by the factor 0.9 / 1.1.
		if a, z := b.After(id, n), b.After(id, n+rapid.IntRange(1, 100).Draw(t, "more")); float64(z) < float64(a)*0.9/1.1-1 {
			t.Fatalf("%+v: got %v after attempt %d and %v after a later one, want no shorter delay", b, a, n, z)
		}
	})
}

func TestBackoffIsRepeatableAndDiffersBetweenTasks(t *testing.T) {
	seen := map[time.Duration]bool{}
	for id := range int64(1000) {
		d := DefaultBackoff.After(id, 1)
		if again := DefaultBackoff.After(id, 1); again != d {
			t.Fatalf("task %d: got %v at the second call, want %v as at the first", id, again, d)
		}
		seen[d.Round(10*time.Millisecond)] = true
	}
	if len(seen) < 150 { // there are 200 steps of 10 ms between 9 s and 11 s
		t.Errorf("got %d different delays for 1000 tasks, want at least 150", len(seen))
	}
}

func TestDefaultBackoffAsDocumented(t *testing.T) {
	for n, want := range map[int]time.Duration{0: 10 * time.Second, 1: 10 * time.Second, 2: 20 * time.Second, 5: 160 * time.Second,
		10: time.Hour, 1 << 30: time.Hour} {
		if got := DefaultBackoff.After(42, n); got < want*9/10 || got > want*11/10 {
			t.Errorf("after attempt %d: got %v, want %v ± 10 %%", n, got, want)
		}
	}
	if d := (Backoff{}).After(1, 3); d != 0 {
		t.Errorf("the zero Backoff: got %v, want 0", d)
	}
}

func TestCodes(t *testing.T) {
	for _, text := range []string{"1", "255", "75", "75,100-111", "1-255", "1,1", "007"} {
		if err := Codes(text).Validate(); err != nil {
			t.Errorf("%q: got error %v, want none", text, err)
		}
	}
	for _, text := range []string{"0", "256", ",", "75,", "75, 76", "10-5", "1-", "-1", "1-2-3", "x", "+75", "1-+5", "1_0", "0x10", "９",
		"99999999999999999999"} {
		err := Codes(text).Validate()
		if err == nil {
			t.Errorf("%q: got no error, want one", text)
		} else if bad := strings.Split(text, ","); !strings.Contains(err.Error(), strconv.Quote(bad[len(bad)-1])) &&
			!strings.Contains(err.Error(), strconv.Quote(bad[0])) {
			t.Errorf("%q: got error %v, want one that quotes the first or the last part", text, err)
		}
	}
	for code, want := range map[int]bool{0: false, 74: false, 75: true, 100: true, 111: true, 112: false} {
		if got := Codes("75,100-111").Contains(code); got != want {
			t.Errorf("75,100-111 contains %d: got %v, want %v", code, got, want)
		}
	}
	for _, code := range []int{0, 255} {
		if !Codes("").Contains(code) {
			t.Errorf("the empty set does not contain %d, want every code", code)
		}
	}
}

func FuzzCodes(f *testing.F) {
	for _, text := range []string{"", "75", "75,100-111", "1-255", "-", ",", "1-2-3", "255-1", "+1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := Codes(text)
		if c.Validate() != nil {
			return
		}
		// A valid text has only digits, '-' and ','. A set that is not empty contains a code.
		if strings.Trim(text, "0123456789-,") != "" {
			t.Fatalf("%q: got no error, want one for characters other than digits, '-' and ','", text)
		}
		some := false
		for code := 1; code <= 255; code++ {
			some = some || c.Contains(code)
		}
		if !some || text != "" && (c.Contains(0) || c.Contains(256)) {
			t.Fatalf("%q: got 0: %v, 256: %v, another code: %v; want at least one code from 1 to 255, and neither 0 nor 256",
				text, c.Contains(0), c.Contains(256), some)
		}
	})
}
