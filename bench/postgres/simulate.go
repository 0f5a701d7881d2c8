package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner/postgres"
)

// simulateRun is the simulation of an installation with many servers, which the flag -simulate selects.
type simulateRun struct {
	servers, workers, slots, perHost, rounds int
	short                                    bool
}

// The simulated installation has the network of a data centre. Each server and each host has as many processors as the computer of the
// measurements, because the model was checked only with that number.
const (
	roundTrip = 500 * time.Microsecond
	taskTime  = 100 * time.Millisecond
	waitLimit = 100 * time.Millisecond // a server is full when 1 % of its tasks wait for their start longer than this
	fullest   = 0.8                    // load of the fullest server, as a share of the load that makes a server full
)

// simulate measures drains, fits the model, compares predictions of the model with further measurements, and simulates the installation.
func (r simulateRun) simulate(ctx context.Context) error {
	if r.short {
		r.rounds = 1
	}
	checked := []point{{servers: 1, processes: 1, slots: 10, nothingAhead: true}}
	for _, slots := range []int{25, 100} {
		checked = append(checked, point{servers: 1, processes: 4, slots: slots}, point{servers: 2, processes: 2, slots: slots})
	}
	arrivals := idlers
	arrivals.feed = single
	checked = append(checked, arrivals)
	measured := map[point]figures{}
	all := slices.Concat(calibration, checked)
	for _, feed := range []load{silence, notices, wakeups} {
		p := idlers
		p.feed = feed
		all = append(all, p)
	}
	for round := range r.rounds {
		for _, p := range all {
			f, err := p.measure(ctx, p.size(r.short))
			if err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			log.Printf("round %d  %s (load %d): %.0f/s, server %.1f µs, workers %.1f µs, %.4f transactions; other programs: %.0f %%",
				round+1, p, p.feed, f.rate, f.server, f.worker, f.messages, 100*f.others)
			if f.rate > measured[p].rate { // keep the result of the fastest round, because other programs have disturbed this round least
				measured[p] = f
			}
		}
	}
	loads := all[len(all)-3:]
	silent := measured[loads[0]]
	c := calibrate(measured, silent, measured[loads[1]], measured[loads[2]])
	one := measured[arrivals] // subtract the processor time that the workers use without tasks, mainly while they start
	one.server, one.worker = one.server-silent.server, one.worker-silent.worker
	measured[arrivals] = one
	fmt.Println("\n| µs | task | message | claim without tasks | notice | commit delay |\n|---|--:|--:|--:|--:|--:|")
	fmt.Printf("| server | %.1f | %.0f | %.0f | %.0f | %.0f |\n", micros(c.serverTask), micros(c.serverMessage), micros(c.serverClaim),
		micros(c.serverNotice), micros(c.commit))
	fmt.Printf("| worker | %.1f | %.0f | %.0f | %.0f | |\n", micros(c.workerTask), micros(c.workerMessage), micros(c.workerClaim),
		micros(c.workerNotice))
	fmt.Println("\n| | | measured | model | error | others |\n|---|---|--:|--:|--:|--:|")
	for i, p := range all[:len(all)-3] {
		use := "prediction"
		if i < len(calibration) {
			use = "calibration"
		}
		compare(p, use, measured[p], c.predict(p, p.size(r.short), runtime.NumCPU()))
	}
	return r.large(c)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// compare prints table rows that compare the measured figures of an installation with those of the model. One row is for the processor time
// of a task. If the workers drain a queue, another row is for the rate. The column "others" has the share of the processors that other
// programs used during the measurement.
func compare(p point, use string, measured, model figures) {
	row := func(unit string, value, model float64) {
		fmt.Printf("| %s | %s | %.0f%s | %.0f%s | %+.0f %% | %.0f %% |\n", p, use, value, unit, model, unit, 100*(model/value-1),
			100*measured.others)
	}
	if p.feed == drain {
		row("/s", measured.rate, model.rate)
	}
	row(" µs", measured.server+measured.worker, model.server+model.worker)
}

// spread is how keys are spread over servers.
type spread struct {
	uniform []float64 // share of the load that each server gets if all keys have the same load
	zipf    []float64 // share of the load that each server gets if the loads of the keys 1, 2, 3 … are in proportion to 1, 1/2, 1/3 …
	moved   float64   // share of the keys that move when a server is added
	first   float64   // share of key 1 in the total load if the loads of the keys are in proportion to 1, 1/2, 1/3 …
}

// spreadKeys spreads n lanes or queues over servers by the rule of runner.
func spreadKeys(kind string, n, servers int) spread {
	owners, moves := make([]int, n), make([]bool, n)
	parallel(n, func(i int) {
		spec := jobs.Spec{Queue: fmt.Sprintf("queue-%d", i+1)}
		if kind == jobs.LaneTarget {
			spec.Lane = fmt.Sprintf("lane-%d", i+1)
		}
		owners[i] = postgres.ServerIndex(spec, servers+1)
		if moves[i] = owners[i] == servers; moves[i] {
			owners[i] = postgres.ServerIndex(spec, servers)
		}
	})
	s := spread{uniform: make([]float64, servers), zipf: make([]float64, servers)}
	sum := 0.0
	for i := range n {
		sum += 1 / float64(i+1)
	}
	for i, owner := range owners {
		s.uniform[owner] += 1 / float64(n)
		s.zipf[owner] += 1 / float64(i+1) / sum
		if moves[i] {
			s.moved += 1 / float64(n)
		}
	}
	s.first = 1 / sum
	return s
}

// skew returns the load of the fullest server, divided by the mean load.
func skew(shares []float64) float64 { return slices.Max(shares) * float64(len(shares)) }

// parallel calls a function for the numbers below n, on all processors.
func parallel(n int, do func(int)) {
	var wg sync.WaitGroup
	for p := range runtime.NumCPU() {
		wg.Go(func() {
			for i := p; i < n; i += runtime.NumCPU() {
				do(i)
			}
		})
	}
	wg.Wait()
}

// server returns the plan of one server of the installation with its workers. The servers do not share anything, so each one is a
// simulation of its own.
func (r simulateRun) server(c costs, i int, rate float64) plan {
	p := plan{costs: c, servers: 1, workers: r.workers / r.servers, slots: r.slots, processors: runtime.NumCPU(), perHost: r.perHost,
		roundTrip: roundTrip, duration: taskTime, rate: rate, until: 3 * time.Second, seed: uint64(i + 1)}
	if r.short {
		p.until = time.Second
	}
	return p
}

// The method "full" returns the greatest rate of tasks of a server at which at most 1 % of the tasks wait for longer than waitLimit.
func (r simulateRun) full(c costs) float64 {
	low, high := 0.0, float64(r.workers/r.servers*r.slots)/taskTime.Seconds()
	for high-low > high/50 {
		middle := (low + high) / 2
		if o := r.server(c, 0, middle).run(); quantile(o.waits, 0.99) > waitLimit {
			high = middle
		} else {
			low = middle
		}
	}
	return low
}

// quantile returns a quantile of a list, or 0 if the list is empty. It sorts the list.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[min(int(math.Ceil(q*float64(len(list)))), len(list))-1]
}

// large simulates the installation and prints its tables.
func (r simulateRun) large(c costs) error {
	if r.workers < r.servers || r.servers < 1 {
		return fmt.Errorf("-servers %d needs at least as many -workers", r.servers)
	}
	lanes := 1_000_000
	if r.short {
		lanes = 10_000
	}
	fmt.Printf("\n%d servers, %d worker processes with %d slots, tasks of %s\n\n", r.servers, r.workers, r.slots, taskTime)
	fmt.Println("| keys | load of the fullest server / mean | tasks/s | processors busy, mean | fullest | p50 | p99 | moved keys |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|")
	most := r.full(c)
	queues, byLane := spreadKeys(jobs.QueueTarget, 1000, r.servers), spreadKeys(jobs.LaneTarget, lanes, r.servers)
	r.row(c, "1000 queues, equal", queues.uniform, most, queues.moved)
	r.row(c, fmt.Sprintf("1000 queues, Zipf; the first has %.0f %%", 100*queues.first), queues.zipf, most, queues.moved)
	r.row(c, fmt.Sprintf("%d lanes, equal", lanes), byLane.uniform, most, byLane.moved)
	r.row(c, fmt.Sprintf("%d lanes, Zipf; the first has %.0f %%", lanes, 100*byLane.first), byLane.zipf, most, byLane.moved)
	if fewer := r; r.workers >= 10*r.servers {
		fewer.workers, fewer.slots, fewer.perHost = r.workers/10, 10*r.slots, max(r.perHost/10, 1)
		name := fmt.Sprintf("1000 queues, equal; %d processes with %d slots", fewer.workers, fewer.slots)
		fewer.row(c, name, queues.uniform, fewer.full(c), queues.moved)
	}
	killed := max(1, r.workers/r.servers/100)
	fmt.Printf("\n| %d of %d workers of each server killed; their tasks are taken over by | tasks | p50 | max |\n|---|--:|--:|--:|\n",
		killed, r.workers/r.servers)
	r.takeover(c, "workers of the same host", killed, 0, 0, 2*time.Second)
	r.takeover(c, "workers of other hosts, lease 60 s", killed, time.Minute, 10*time.Second, time.Second)
	return nil
}

// row simulates all servers and prints the results as a row of a table. The parameter "shares" has the share of the load that each server
// gets. The parameter "most" is the greatest rate of tasks that a server can take. The fullest server gets this rate times the constant
// "fullest".
func (r simulateRun) row(c costs, name string, shares []float64, most, moved float64) {
	rate := most * fullest / slices.Max(shares)
	outcomes := make([]outcome, r.servers)
	parallel(r.servers, func(i int) { outcomes[i] = r.server(c, i, rate*shares[i]).run() })
	var waits []time.Duration
	var mean, top, tasks float64
	for _, o := range outcomes {
		busy := o.serverTime.Seconds() / o.took.Seconds() / float64(runtime.NumCPU())
		mean, top = mean+busy/float64(r.servers), max(top, busy)
		waits, tasks = append(waits, o.waits...), tasks+float64(o.tasks)/o.took.Seconds()
	}
	fmt.Printf("| %s | %.2f | %.0f | %.0f %% | %.0f %% | %s | %s | %.2f %% |\n", name, skew(shares), tasks, 100*mean, 100*top,
		milli(quantile(waits, 0.5)), milli(quantile(waits, 0.99)), 100*moved)
}

// milli returns a time in milliseconds.
func milli(d time.Duration) string {
	return strings.Replace(fmt.Sprintf("%.1f ms", d.Seconds()*1000), ".0 ms", " ms", 1)
}

// takeover simulates the death of workers of each server, and prints how long their tasks waited. Seven of ten slots have a task that takes
// a minute on average.
func (r simulateRun) takeover(c costs, name string, killed int, lease, beat, check time.Duration) {
	outcomes := make([]outcome, r.servers)
	parallel(r.servers, func(i int) {
		p := r.server(c, i, 0)
		slots := 0.7 * float64(p.workers*p.slots)
		p.duration, p.backlog, p.rate = time.Minute, int(slots), slots/60
		p.killed, p.killedAt, p.lease, p.beat, p.check = killed, time.Second, lease, beat, check
		p.until = p.killedAt + lease + check + 5*time.Second
		outcomes[i] = p.run()
	})
	var all []time.Duration
	for _, o := range outcomes {
		all = append(all, o.takeovers...)
	}
	fmt.Printf("| %s | %d | %.1f s | %.1f s |\n", name, len(all), quantile(all, 0.5).Seconds(), quantile(all, 1).Seconds())
}
