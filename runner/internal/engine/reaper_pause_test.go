package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/test/testkit"
)

func TestReaperChecksMoreRarelyIfItsReadsTakeLong(t *testing.T) {
	p := &reaper{e: &Engine{}}
	testkit.Equal(t, "pause after fast reads", p.pause(), reapEvery)
	p.cost = 100 * time.Millisecond
	testkit.Equal(t, "pause after slow reads", p.pause(), 5*time.Second)
	p.seen = map[db.Lease]time.Duration{{Length: 12_000}: 0}
	testkit.Equal(t, "pause with a lease of 12 s", p.pause(), 2*time.Second)
}

// TestReadsOfReaperEnd checks that a database that does not answer holds up
// a reaper for a lease at most, and the end of the worker not at all.
func TestReadsOfReaperEnd(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{time.Second: minReapRead, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			e := &Engine{o: Options{WorkOptions: WorkOptions{Lease: lease}}}
			e.stopped, e.stop = context.WithCancel(t.Context())
			began := time.Now()
			read, cancel := (&reaper{e: e}).readContext()
			defer cancel()
			<-read.Done()
			testkit.Equal(t, "longest read", time.Since(began), want)
			read, cancel = (&reaper{e: e}).readContext()
			defer cancel()
			e.stop()
			<-read.Done()
			testkit.Equal(t, "time until the end", time.Since(began), want)
		})
	}
}
