package cli

import (
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
)

func FuzzTimes(f *testing.F) {
	f.Add("15:04", int64(1_800_000_000))
	f.Add("2026-01-31 15:04", int64(0))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		now := time.Unix(seconds%(1<<33), 0)
		if at, err := humanize.ParseTime(text, now, time.UTC); err == nil && strings.Contains(text, ":") && len(text) <= 5 &&
			(!at.After(now) || at.Sub(now) > 24*time.Hour) {
			t.Fatalf("%q at %v: got %v, want a time within the next 24h", text, now, at)
		}
		if at, err := humanize.ParseWhen(text, now, time.UTC); err == nil && strings.Contains(text, ":") && len(text) <= 5 &&
			at.After(now) {
			t.Fatalf("%q at %v: got %v, want a time that is not in the future", text, now, at)
		}
	})
}

func FuzzIDs(f *testing.F) {
	f.Add("41,42")
	f.Fuzz(func(t *testing.T, text string) {
		if ids, err := taskspec.ParseIDs(text); err == nil {
			for _, id := range ids {
				if id < 1 {
					t.Fatalf("%q: got ids %v, want ids of at least 1", text, ids)
				}
			}
		}
	})
}
