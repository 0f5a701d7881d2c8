//go:build linux

package supervisor

import (
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkGuardianPrice compares commands that a guardian starts with commands
// that are started directly. It measures the time of one command and the rate
// with 8 slots. It prints the time that the guardian adds (goal: at most 1 ms
// at p50) and the ratio of the rates (goal: at least 0.8).
func BenchmarkGuardianPrice(b *testing.B) {
	const each, slots = 300, 8
	lock := newTestLock(b)
	pool := make(chan *Guardian, slots)
	for i := range slots {
		pool <- startGuardianInSlot(b, lock, i)
	}
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	c := Command{Path: path, Argv: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin", "RUNNER_WORKER_ID=w"}}
	direct := func() {
		p, err := Start(c)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = p.Wait()
	}
	guarded := func() {
		g := <-pool
		defer func() { pool <- g }()
		child, err := g.start(c, Key{1, generation.Add(1)}, time.Now().Add(time.Hour))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = child.Wait()
	}
	var one [2][]time.Duration
	var all [2]time.Duration
	for b.Loop() {
		// Alternate between a command that is started directly and one that the
		// guardian starts, so that other load on the machine affects both.
		for range each {
			for i, start := range []func(){direct, guarded} {
				began := time.Now()
				start()
				one[i] = append(one[i], time.Since(began))
			}
		}
		for range 4 {
			for i, start := range []func(){direct, guarded} {
				began := time.Now()
				var wg sync.WaitGroup
				for range slots {
					wg.Go(func() {
						for range each / slots {
							start()
						}
					})
				}
				wg.Wait()
				all[i] += time.Since(began)
			}
		}
	}
	for i := range one {
		slices.Sort(one[i])
	}
	p50 := func(i int) float64 { return float64(one[i][len(one[i])/2].Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p50(0), "p50-direct-ms")
	b.ReportMetric(p50(1)-p50(0), "p50-added-ms")
	b.ReportMetric(float64(b.N*4*(each/slots)*slots)/all[0].Seconds(), "direct/s")
	b.ReportMetric(all[0].Seconds()/all[1].Seconds(), "rate-ratio")
}
