package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// A worker with one slot that claims nothing ahead runs one task in each cycle.
func TestASingleSlotWaitsForItsCycle(t *testing.T) {
	const micro, tasks = time.Microsecond, 50
	c := costs{serverMessage: 100 * micro, serverTask: 20 * micro, workerMessage: 40 * micro, workerTask: 7 * micro, commit: 300 * micro}
	p := plan{costs: c, servers: 1, workers: 1, slots: 1, nothingAhead: true, processors: 4, perHost: 1, roundTrip: 200 * micro,
		backlog: tasks}
	o := p.run()
	// the time from the start of a cycle until the task is on the disk: the way to the server, the message with one task, and the commit
	written := 100*micro + 110*micro + 300*micro
	cycle := written + 100*micro + 40*micro + 7*micro
	if want := tasks*cycle + written; o.tasks != tasks || o.took != want {
		t.Errorf("%d tasks took %s, not %s", o.tasks, o.took, want)
	}
}

// The processors of a full server limit its rate.
func TestAFullServerIsLimitedByItsProcessors(t *testing.T) {
	for _, processors := range []int{1, 2, 8} {
		c := costs{serverTask: 100 * time.Microsecond}
		o := plan{costs: c, servers: 1, workers: 20, slots: 100, processors: processors, perHost: 10, backlog: 50_000}.run()
		rate, want := float64(o.tasks)/o.took.Seconds(), float64(processors)*10_000
		if math.Abs(rate/want-1) > 0.02 {
			t.Errorf("%d processors: %.0f tasks/s, not %.0f", processors, rate, want)
		}
	}
}

// The slots limit the rate if tasks are long and nothing else costs time.
func TestSlotsLimitTheRateOfLongTasks(t *testing.T) {
	o := plan{servers: 2, workers: 4, slots: 10, processors: 1, perHost: 1, backlog: 20_000, duration: 20 * time.Millisecond,
		until: 10 * time.Second}.run()
	if rate := float64(o.tasks) / o.took.Seconds(); math.Abs(rate/2000-1) > 0.03 {
		t.Errorf("40 slots run %.0f tasks of 20 ms per second, not 2000", rate)
	}
}

// The first worker has ten of the twelve tasks when it is killed. The other workers take over these ten tasks when the lease ends.
func TestATakeoverTakesTheLease(t *testing.T) {
	p := plan{servers: 1, workers: 3, slots: 10, processors: 1, perHost: 1, backlog: 12, duration: 1000 * time.Hour, killed: 1,
		killedAt: time.Second, lease: time.Minute, until: 2 * time.Minute}
	o := p.run()
	if len(o.takeovers) != 10 || slices.Min(o.takeovers) != time.Minute || slices.Max(o.takeovers) != time.Minute {
		t.Errorf("takeovers after %v, not ten after 1m", o.takeovers)
	}
	// With these values, a lease begins at the last heartbeat, up to 10 s before the kill. So a takeover may be up to 10 s earlier. Other
	// workers check the lease every second, so a takeover may also be up to 1 s later.
	p.beat, p.check = 10*time.Second, time.Second
	for p.seed = range 20 {
		if at := p.run().takeovers[0]; at < 50*time.Second || at > 61*time.Second {
			t.Errorf("seed %d: takeover after %s", p.seed, at)
		}
	}
}

// Each notification makes all idle workers claim. A process waits for the time notifyPause between two notifications.
func TestANotificationMakesAllWorkersClaim(t *testing.T) {
	c := costs{serverClaim: time.Microsecond}
	p := plan{costs: c, servers: 1, workers: 30, slots: 1, processors: 1, perHost: 10, rate: 1e5, duration: time.Hour, until: time.Second}
	o := p.run()
	// Each of the 30 workers has one slot, so 30 tasks start. None of them ends before the simulation does.
	if len(o.waits) != 30 || o.tasks != 0 {
		t.Errorf("%d tasks have started and %d have ended, not 30 and 0", len(o.waits), o.tasks)
	}
	if most := int(time.Second/notifyPause) * 31; o.messages > most+200 {
		t.Errorf("%d messages; at most one notification in %s was expected", o.messages, notifyPause)
	}
}

// A simulation with the same seed has the same result.
func TestASimulationIsDeterministic(t *testing.T) {
	p := plan{costs: costs{serverMessage: time.Millisecond}, servers: 2, workers: 6, slots: 3, processors: 2, rate: 500,
		duration: 5 * time.Millisecond, until: time.Second, seed: 7}
	a, b := p.run(), p.run()
	if a.tasks == 0 || a.tasks != b.tasks || a.serverTime != b.serverTime || !slices.Equal(a.waits, b.waits) {
		t.Errorf("%d tasks and %d tasks", a.tasks, b.tasks)
	}
}

func TestSkewIsTheGreatestLoadDividedByTheMean(t *testing.T) {
	if got := skew([]float64{0.5, 0.25, 0.125, 0.125}); got != 2 {
		t.Errorf("skew %v, not 2", got)
	}
	// With two servers, lane-1 belongs to the second one, and lane-2, lane-3 and lane-4 belong to the first one. The hashes were computed
	// with sha256sum.
	if got := spreadKeys(jobs.LaneTarget, 4, 2).uniform; !slices.Equal(got, []float64{0.75, 0.25}) {
		t.Errorf("loads %v", got)
	}
	s := spreadKeys(jobs.LaneTarget, 20_000, 9)
	if sum(s.uniform) < 0.999 || sum(s.zipf) < 0.999 || skew(s.uniform) > 1.1 || math.Abs(s.moved-0.1) > 0.01 {
		t.Errorf("20,000 lanes on 9 servers: skew %.2f, and a tenth server takes %.3f of the lanes", skew(s.uniform), s.moved)
	}
}

// The points (1, 5), (2, 7) and (3, 9) are on the line with slope 2 and value 3 at 0.
func TestFitLine(t *testing.T) {
	slope, at0 := fitLine([]float64{1, 2, 3}, []float64{5, 7, 9})
	if math.Abs(slope-2) > 1e-9 || math.Abs(at0-3) > 1e-9 {
		t.Errorf("slope %v and %v at 0, not 2 and 3", slope, at0)
	}
}
