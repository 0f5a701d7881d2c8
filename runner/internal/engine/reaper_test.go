package engine

import (
	"slices"
	"testing"
	"time"

	"example.com/runner/db"
)

func TestExpiredCountsOnlyTimeThatReaperObserved(t *testing.T) {
	lease := func(expires int64) db.Lease {
		return db.Lease{ClaimID: db.ClaimID{ID: 1, GenerationID: 2}, WorkerID: "w", ExpiresAt: expires, Length: 60_000}
	}
	unknown, revoked := lease(5), lease(0)
	unknown.Length = 0
	next := lease(5)
	next.GenerationID++
	for name, c := range map[string]struct {
		looks []db.Lease
		every time.Duration // time between two checks of the leases
		lost  int           // index of the check that finds the lease expired; -1 if none does
	}{
		"over long ago, by the clock on the wall": {slices.Repeat([]db.Lease{lease(1)}, 9), 10 * time.Second, 6},
		"valid for years, by the same clock":      {slices.Repeat([]db.Lease{lease(1 << 50)}, 9), 10 * time.Second, 6},
		"renewed in between": {[]db.Lease{lease(1), lease(1), lease(1), lease(1), lease(2), lease(2), lease(2), lease(2)},
			10 * time.Second, -1},
		"renewed with the clock set back": {[]db.Lease{lease(9), lease(9), lease(9), lease(9), lease(8), lease(8), lease(8)},
			10 * time.Second, -1},
		"claimed again": {[]db.Lease{lease(5), lease(5), lease(5), next, next, next, next}, 10 * time.Second, -1},
		// The length of this lease is unknown, so the reaper uses the length of
		// its own leases, which is 30 s.
		"of an unknown worker":                 {slices.Repeat([]db.Lease{unknown}, 9), 10 * time.Second, 3},
		"seen by a reaper that was stopped":    {[]db.Lease{lease(1), lease(1), lease(1)}, 24 * time.Hour, -1},
		"seen by a reaper that is always late": {slices.Repeat([]db.Lease{lease(1)}, 9), time.Hour, 3},
		"revoked, and its reaper has died":     {[]db.Lease{lease(1), revoked, revoked}, time.Second, 2},
	} {
		p := &reaper{e: &Engine{o: Options{WorkOptions: WorkOptions{Lease: 30 * time.Second}}}}
		found := -1
		for i, l := range c.looks {
			var lost []db.Lease
			p.seen, lost = p.expired([]db.Lease{l}, c.every)
			if len(lost) > 0 && found < 0 {
				found = i
			}
		}
		if found != c.lost {
			t.Errorf("%s: lost at look %d, want %d", name, found, c.lost)
		}
	}
	p := &reaper{seen: map[db.Lease]time.Duration{lease(1): time.Hour}}
	if seen, lost := p.expired(nil, time.Second); len(seen) != 0 || len(lost) != 0 {
		t.Errorf("after the lease is gone: got %v seen and %v lost, want none", seen, lost)
	}
}
