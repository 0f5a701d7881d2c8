package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"time"

	"example.com/runner/runner"
)

var (
	drains = map[int]*workload{
		1:   {name: "drain-1", title: "Drain no-op functions, one at a time", unit: "/s"},
		10:  {name: "drain-10", title: "Drain no-op functions, concurrency 10", unit: "/s"},
		100: {name: "drain-100", title: "Drain no-op functions, concurrency 100", unit: "/s"},
	}
	enqueueOne  = &workload{name: "enqueue-1", title: "Enqueue one by one, one goroutine", unit: "/s"}
	enqueueMany = &workload{name: "enqueue-100", title: "Enqueue one by one, 100 goroutines", unit: "/s"}
	batches     = &workload{name: "batch", title: "Enqueue in transactions of 1000", unit: "/s"}
	both        = &workload{name: "both", title: "Enqueue and work at once, 10 callers, concurrency 10", unit: "/s"}
	latencies   = &workload{name: "latency", title: "Time from enqueue to start: an idle worker in the same process",
		unit: "ms", low: true}
	loadeds = &workload{name: "latency-loaded", title: "Time from enqueue to start: 4 callers enqueue every 4 ms, concurrency 10",
		unit: "ms", low: true}
	across = &workload{name: "latency-across", title: "Time from enqueue to start: an idle worker in another process",
		unit: "ms", low: true}
	besides = &workload{name: "beside", title: "Time of an enqueue while another process drains at full speed", unit: "ms", low: true}
	keeps   = &workload{name: "beside-kept", title: "Speed of a drain while another process enqueues, compared with its full speed",
		unit: "%"}
	idles   = &workload{name: "idle", title: "Processor time of an idle worker", unit: "% of a core", low: true}
	many    = &workload{name: "processes", title: "Worker processes with 10 slots each on one file", unit: "/s"}
	starves = &workload{name: "processes-wait", title: "The 8 processes on one file: longest wait of one of them for its next task",
		unit: "ms", low: true}
	commands  = &workload{name: "commands", title: "500 × true, two at a time", unit: "/s"}
	starts    = &workload{name: "start", title: "Time of one command that enqueues one task while a worker runs", unit: "ms", low: true}
	startSize = &workload{name: "start-memory", title: "runner enqueue: greatest memory", unit: "MB", low: true}
	cli       = &workload{name: "cli-batch", title: "runner enqueue --batch, 1 M lines", unit: "/s"}
	cliMemory = &workload{name: "cli-memory", title: "runner enqueue --batch: greatest memory", unit: "MB", low: true}
	growth    = &workload{name: "growth", title: "Time to claim, run and finish a task beside other tasks, ten at a time",
		unit: "µs each", low: true}
	writes = &workload{name: "written", title: "Bytes sent to the disk for one task, from enqueue to end", unit: "bytes", low: true}
	sizes  = &workload{name: "size", title: "Size of the file for each completed task without output", unit: "bytes", low: true}
	costs  = &workload{name: "cost", title: "Processor time of one task in the bare loop, without a part of the schema",
		unit: "µs", low: true}
	inUse = &workload{name: "feature", title: "Processor time of one task in the library, with a feature",
		unit: "µs", low: true}
)

const (
	own         = "runner"
	ownDurable  = "runner, durable (its default)"
	limit       = "bare loop"
	riverOne    = "River, default"
	riverTuned  = "River, tuned"
	liteOne     = "backlite, README"
	liteTuned   = "backlite, one connection"
	riverSynced = riverTuned + ", synced"
	liteSynced  = liteTuned + ", synced"
	plain       = "plainjob"
	plainOne    = plain + " (one worker: it has no more)"
)

// normal and full are the two values of PRAGMA synchronous in this benchmark.
const normal, full = "NORMAL", "FULL"

// plan collects the measurements in the order of the report. All fields except
// measurements are systems that several measurements use.
type plan struct {
	measurements                   []*measurement
	mine, durable                  system
	river, riverTuned, riverSynced system
	lite, liteTuned, liteSynced    system
}

// measurements returns the measurements that this machine can run, in the order
// of the report.
func measurements(e *env) ([]*measurement, error) {
	p := &plan{
		mine: ours(own, runner.SyncNormal), durable: ours(ownDurable, runner.SyncFull),
		river: riverSystem(riverOne, normal, 0), riverTuned: riverSystem(riverTuned, normal, time.Millisecond),
		riverSynced: riverSystem(riverSynced, full, time.Millisecond),
		lite:        backliteSystem(liteOne, normal, 0), liteTuned: backliteSystem(liteTuned, normal, 1),
		liteSynced: backliteSystem(liteSynced, full, 1),
	}
	p.addDrains()
	p.addEnqueues()
	p.addLatencies()
	p.addProcesses()
	if e.binary != "" {
		p.addCommands()
	}

	p.addGrowthAndSizes()
	names, err := costNames()
	for _, name := range names {
		p.add(costs, name, life(name, 10_000))
	}

	for _, f := range features() {
		p.add(inUse, f.name, f.life(10_000))
	}

	return p.measurements, err
}

func (p *plan) add(w *workload, system string, run func(context.Context, *env) (float64, error)) {
	p.measurements = append(p.measurements, &measurement{workload: w, system: system, run: run})
}

func (p *plan) addDrains() {
	for _, c := range []int{1, 10, 100} {
		n := 100_000 // enough tasks for about two seconds, so that the start and the stop of the workers add little
		if c == 1 {
			n = 20_000
		}

		p.add(drains[c], own, p.mine.drain(n, c))
		p.add(drains[c], limit, bareDrain(normal, n, c))
		p.add(drains[c], ownDurable, p.durable.drain(n, c))
		slow := 2000 // number of tasks for the systems that sleep between fetches: with n tasks they would need minutes
		if c > 1 {
			p.add(drains[c], riverOne, p.river.drain(slow, c))
		}

		p.add(drains[c], riverTuned, p.riverTuned.drain(n/10, c))
		if c > 1 {
			p.add(drains[c], liteOne, p.lite.drain(slow, c))
		}

		p.add(drains[c], liteTuned, p.liteTuned.drain(slow*c/10+slow/20, c))
		if havePlainjob() && c == 100 {
			p.add(drains[c], plainOne, plainjob("drain", 2*n/5))
		}
	}
}

func (p *plan) addEnqueues() {
	p.add(enqueueOne, own, p.mine.enqueue(20_000, 1))
	p.add(enqueueOne, limit, bareEnqueue(normal, 20_000, 1))
	p.add(enqueueOne, ownDurable, p.durable.enqueue(5000, 1))
	p.add(enqueueOne, riverTuned, p.riverTuned.enqueue(5000, 1))
	p.add(enqueueOne, liteTuned, p.liteTuned.enqueue(20_000, 1))
	if havePlainjob() {
		p.add(enqueueOne, plain, plainjob("enqueue", 20_000))
	}

	p.add(enqueueMany, ownDurable, p.durable.enqueue(50_000, 100))
	p.add(enqueueMany, own, p.mine.enqueue(50_000, 100))
	p.add(enqueueMany, riverTuned, p.riverTuned.enqueue(5000, 100))
	p.add(enqueueMany, liteTuned, p.liteTuned.enqueue(20_000, 100))
	p.add(batches, own, p.mine.batch(100_000))
	p.add(batches, limit, bareEnqueue(normal, 100_000, 1000))
	p.add(batches, riverTuned, p.riverTuned.batch(20_000))
	p.add(batches, liteTuned, p.liteTuned.batch(50_000))
	if havePlainjob() {
		p.add(batches, plain, plainjob("batch", 100_000))
	}

	p.add(both, own, p.mine.mixed(20_000, 10))
	p.add(both, ownDurable, p.durable.mixed(20_000, 10))
	p.add(both, riverTuned, p.riverTuned.mixed(5000, 10))
	p.add(both, liteTuned, p.liteTuned.mixed(2000, 10))
}

func (p *plan) addLatencies() {
	for _, at := range []struct {
		name string
		p    float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		p.add(latencies, own+", "+at.name, p.mine.latency(300, at.p))
		p.add(latencies, ownDurable+", "+at.name, p.durable.latency(300, at.p))
		p.add(latencies, riverTuned+", "+at.name, p.riverTuned.latency(300, at.p))
		p.add(latencies, liteTuned+", "+at.name, p.liteTuned.latency(300, at.p))
		if havePlainjob() {
			p.add(latencies, plain+" polling each ms, "+at.name, plainjob("latency", 300, map[float64]string{0.5: "0.5",
				0.99: "0.99"}[at.p], "1"))
		}

		p.add(loadeds, own+", "+at.name, p.mine.loaded(2000, at.p))
		p.add(loadeds, ownDurable+", "+at.name, p.durable.loaded(2000, at.p))
		p.add(loadeds, riverTuned+", "+at.name, p.riverTuned.loaded(2000, at.p))
		p.add(loadeds, liteTuned+", "+at.name, p.liteTuned.loaded(200, at.p))
		p.add(across, own+", "+at.name, latencyAcross(300, at.p))
		p.add(besides, own+", concurrency 10, "+at.name, enqueueBeside(10, at.p))
		p.add(besides, own+", concurrency 100, "+at.name, enqueueBeside(100, at.p))
	}
}

func (p *plan) addProcesses() {
	p.add(keeps, own+", concurrency 10", keptSpeed(10))
	p.add(keeps, own+", concurrency 100", keptSpeed(100))
	p.add(idles, own, idle)
	p.add(many, "1 process", manyProcesses(40_000, 1, false))
	p.add(many, "8 processes", manyProcesses(40_000, 8, false))
	p.add(starves, "8 processes", manyProcesses(40_000, 8, true))
}

// addCommands adds the measurements that need the program runner.
func (p *plan) addCommands() {
	enqueueTrue := func(e *env) []string { return []string{e.binary, "enqueue", "--", "true"} }
	p.add(commands, own, ourCommands)
	systems := commandSystems()
	for _, name := range slices.Sorted(maps.Keys(systems)) {
		if tool := map[string]string{"GNU parallel -j2": "parallel", "nq": "nq", "task-spooler -S 2": "tsp",
			"xargs -P2": "xargs"}[name]; have(tool) {
			p.add(commands, name, systems[name])
		}
	}

	p.add(starts, "runner enqueue -- true", start(enqueueTrue, 40))
	p.add(startSize, "runner enqueue -- true", startMemory(enqueueTrue, 20))
	if have("sqlite3") {
		p.add(starts, "sqlite3, one INSERT", start(func(e *env) []string {
			return []string{"sqlite3", "-cmd", ".timeout 5000", e.path("runner.db"),
				`INSERT INTO enqueue (job, args, queue) VALUES ('command', '["true"]', 'other')`}
		}, 40))
	}

	p.add(cli, own, batchLines(1_000_000, false))
	p.add(cliMemory, own, batchLines(1_000_000, true))
}

func (p *plan) addGrowthAndSizes() {
	for _, pile := range piles {
		p.add(growth, pile.name, pile.perTask)
	}

	for _, c := range []struct{ tasks, concurrency int }{{2000, 1}, {20_000, 100}} {
		at := fmt.Sprintf(", %d at a time", c.concurrency)
		p.add(writes, ownDurable+at, p.durable.written(c.tasks, c.concurrency))
		p.add(writes, riverSynced+at, p.riverSynced.written(c.tasks, c.concurrency))
		p.add(writes, liteSynced+at, p.liteSynced.written(min(c.tasks, 200*c.concurrency), c.concurrency)) // fewer tasks: backlite is slow
	}

	p.add(sizes, own, p.mine.kept(20_000, "runner.db"))
	p.add(sizes, riverTuned, p.riverTuned.kept(20_000, "river.db"))
	p.add(sizes, liteTuned, p.liteTuned.kept(20_000, "backlite.db"))
}

func have(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}
