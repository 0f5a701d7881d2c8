package cli

import (
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/timetext"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"65536": 65536, "64KiB": 65536, "1MiB": 1 << 20, "1GiB": 1 << 30, "0": 0} {
		if n, err := parseSize(text); err != nil || n != want {
			t.Errorf("%s: got %d, error %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "+1", "1.5MiB", "64kb", "64 KiB", "9223372036854775808", "8589934592GiB"} {
		if n, err := parseSize(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, n)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("64KiB")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseSize(text)
		if err != nil {
			return
		}
		if again, err := parseSize(humanize.ExactSize(n)); n < 0 || err != nil || again != n {
			t.Fatalf("%q: got %d, written as %q and read as %d (%v); want the same size, not negative", text, n, humanize.ExactSize(n),
				again,
				err)
		}
	})
}

func FuzzTimes(f *testing.F) {
	f.Add("15:04", int64(1_800_000_000))
	f.Add("2026-01-31 15:04", int64(0))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		now := time.Unix(seconds%(1<<33), 0)
		if at, err := timetext.ParseTime(text, now, time.UTC); err == nil && strings.Contains(text, ":") && len(text) <= 5 &&
			(!at.After(now) || at.Sub(now) > 24*time.Hour) {
			t.Fatalf("%q at %v: got %v, want a time within the next 24h", text, now, at)
		}
		if at, err := timetext.ParseWhen(text, now, time.UTC); err == nil && strings.Contains(text, ":") && len(text) <= 5 &&
			at.After(now) {
			t.Fatalf("%q at %v: got %v, want a time that is not in the future", text, now, at)
		}
	})
}

func FuzzIDsAndCodes(f *testing.F) {
	f.Add("41,42")
	f.Add("75,100-111")
	f.Fuzz(func(t *testing.T, text string) {
		if ids, err := ParseIDs(text); err == nil {
			for _, id := range ids {
				if id < 1 {
					t.Fatalf("%q: got ids %v, want ids of at least 1", text, ids)
				}
			}
		}
		if codes, err := parseCodes(text); err == nil && (taskspec.HasCode(codes, 0) || taskspec.HasCode(codes, 256)) {
			t.Fatalf("%q: got codes %v, want none outside of 1 to 255", text, codes)
		}
	})
}
