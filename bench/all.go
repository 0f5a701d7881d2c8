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
	latencies   = &workload{name: "latency", title: "From enqueue to start, idle, the same process", unit: "ms", low: true}
	loadeds     = &workload{name: "latency-loaded", title: "From enqueue to start, while 4 callers enqueue each 4 ms, concurrency 10",
		unit: "ms", low: true}
	across  = &workload{name: "latency-across", title: "From enqueue to start, idle, another process", unit: "ms", low: true}
	besides = &workload{name: "beside", title: "Enqueue beside another process that drains at full speed", unit: "ms", low: true}
	keeps   = &workload{name: "beside-kept", title: "What a drain at full speed keeps beside such enqueues", unit: "%"}
	idles   = &workload{name: "idle", title: "An idle worker", unit: "% of a core", low: true}
	many    = &workload{name: "processes", title: "Workers of 10 on one file", unit: "/s"}
	starves = &workload{name: "processes-wait", title: "The same: the longest that one of them waited for its next task",
		unit: "ms", low: true}
	commands  = &workload{name: "commands", title: "500 × true, two at a time", unit: "/s"}
	starts    = &workload{name: "start", title: "One process that enqueues one command, beside a worker", unit: "ms", low: true}
	startSize = &workload{name: "start-memory", title: "The same: memory at most", unit: "MB", low: true}
	cli       = &workload{name: "cli-batch", title: "runner enqueue --batch, 1 M lines", unit: "/s"}
	cliMemory = &workload{name: "cli-memory", title: "The same: memory at most", unit: "MB", low: true}
	growth    = &workload{name: "growth", title: "Claim, run and finish, ten at a time, beside other tasks", unit: "µs each", low: true}
	writes    = &workload{name: "written", title: "Sent to the disk for the life of a task", unit: "bytes", low: true}
	sizes     = &workload{name: "size", title: "The file, for each completed task without output", unit: "bytes", low: true}
	costs     = &workload{name: "cost", title: "The life of a task in the bare loop, without a part of the schema: processor time",
		unit: "µs", low: true}
	inUse = &workload{name: "feature", title: "The life of a task through the library, with a feature: processor time",
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

// all returns the measurements that this machine can run, in the order of the report.
func all(e *env) ([]*measurement, error) {
	var list []*measurement
	add := func(w *workload, system string, run func(context.Context, *env) (float64, error)) {
		list = append(list, &measurement{workload: w, system: system, run: run})
	}
	const normal, full = "NORMAL", "FULL"
	mine, durable := ours(own, runner.Normal), ours(ownDurable, runner.Full)
	river1, river2 := riverSystem(riverOne, normal, 0), riverSystem(riverTuned, normal, time.Millisecond)
	riverFull, liteFull := riverSystem(riverSynced, full, time.Millisecond), backliteSystem(liteSynced, full, 1)
	lite1, lite2 := backliteSystem(liteOne, normal, 0), backliteSystem(liteTuned, normal, 1)
	for _, c := range []int{1, 10, 100} {
		n := 100_000 // with this number a drain takes about two seconds, so the start and the stop of the workers add little
		if c == 1 {
			n = 20_000
		}
		add(drains[c], own, mine.drain(n, c))
		add(drains[c], limit, bareDrain(normal, n, c))
		add(drains[c], ownDurable, durable.drain(n, c))
		slow := 2000 // smaller number for systems that sleep between fetches; with more tasks a drain would take minutes
		if c > 1 {
			add(drains[c], riverOne, river1.drain(slow, c))
		}
		add(drains[c], riverTuned, river2.drain(n/10, c))
		if c > 1 {
			add(drains[c], liteOne, lite1.drain(slow, c))
		}
		add(drains[c], liteTuned, lite2.drain(slow*c/10+slow/20, c))
		if havePlainjob() && c == 100 {
			add(drains[c], plainOne, plainjob("drain", 2*n/5))
		}
	}
	add(enqueueOne, own, mine.enqueue(20_000, 1))
	add(enqueueOne, limit, bareEnqueue(normal, 20_000, 1))
	add(enqueueOne, ownDurable, durable.enqueue(5000, 1))
	add(enqueueOne, riverTuned, river2.enqueue(5000, 1))
	add(enqueueOne, liteTuned, lite2.enqueue(20_000, 1))
	if havePlainjob() {
		add(enqueueOne, plain, plainjob("enqueue", 20_000))
	}
	add(enqueueMany, ownDurable, durable.enqueue(50_000, 100))
	add(enqueueMany, own, mine.enqueue(50_000, 100))
	add(enqueueMany, riverTuned, river2.enqueue(5000, 100))
	add(enqueueMany, liteTuned, lite2.enqueue(20_000, 100))
	add(batches, own, mine.batch(100_000))
	add(batches, limit, bareEnqueue(normal, 100_000, 1000))
	add(batches, riverTuned, river2.batch(20_000))
	add(batches, liteTuned, lite2.batch(50_000))
	if havePlainjob() {
		add(batches, plain, plainjob("batch", 100_000))
	}
	add(both, own, mine.both(20_000, 10))
	add(both, ownDurable, durable.both(20_000, 10))
	add(both, riverTuned, river2.both(5000, 10))
	add(both, liteTuned, lite2.both(2000, 10))
	for _, p := range []struct {
		name string
		p    float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		add(latencies, own+", "+p.name, mine.latency(300, p.p))
		add(latencies, ownDurable+", "+p.name, durable.latency(300, p.p))
		add(latencies, riverTuned+", "+p.name, river2.latency(300, p.p))
		add(latencies, liteTuned+", "+p.name, lite2.latency(300, p.p))
		if havePlainjob() {
			add(latencies, plain+" polling each ms, "+p.name, plainjob("latency", 300, map[float64]string{0.5: "0.5",
				0.99: "0.99"}[p.p], "1"))
		}
		add(loadeds, own+", "+p.name, mine.loaded(2000, p.p))
		add(loadeds, ownDurable+", "+p.name, durable.loaded(2000, p.p))
		add(loadeds, riverTuned+", "+p.name, river2.loaded(2000, p.p))
		add(loadeds, liteTuned+", "+p.name, lite2.loaded(200, p.p))
		add(across, own+", "+p.name, latencyAcross(300, p.p))
		add(besides, own+", concurrency 10, "+p.name, beside(10, p.p))
		add(besides, own+", concurrency 100, "+p.name, beside(100, p.p))
	}
	add(keeps, own+", concurrency 10", kept(10))
	add(keeps, own+", concurrency 100", kept(100))
	add(idles, own, idle)
	add(many, "1 process", manyProcesses(40_000, 1, false))
	add(many, "8 processes", manyProcesses(40_000, 8, false))
	add(starves, "8 processes", manyProcesses(40_000, 8, true))
	if e.binary != "" {
		add(commands, own, ourCommands)
		systems := commandSystems()
		for _, name := range slices.Sorted(maps.Keys(systems)) {
			if tool := map[string]string{"GNU parallel -j2": "parallel", "nq": "nq", "task-spooler -S 2": "tsp",
				"xargs -P2": "xargs"}[name]; have(tool) {
				add(commands, name, systems[name])
			}
		}
		add(starts, "runner enqueue -- true", start(func(e *env) []string { return []string{e.binary, "enqueue", "--", "true"} }, 40))
		add(startSize, "runner enqueue -- true", startMemory(func(e *env) []string {
			return []string{e.binary, "enqueue", "--",
				"true"}
		}, 20))
		if have("sqlite3") {
			add(starts, "sqlite3, one INSERT", start(func(e *env) []string {
				return []string{"sqlite3", "-cmd", ".timeout 5000", e.path("runner.db"),
					`INSERT INTO enqueue (job, args, queue) VALUES ('command', '["true"]', 'other')`}
			}, 40))
		}
		add(cli, own, batchLines(1_000_000, false))
		add(cliMemory, own, batchLines(1_000_000, true))
	}
	for _, p := range piles {
		add(growth, p.name, p.beside)
	}
	for _, c := range []struct{ tasks, concurrency int }{{2000, 1}, {20_000, 100}} {
		at := fmt.Sprintf(", %d at a time", c.concurrency)
		add(writes, ownDurable+at, durable.written(c.tasks, c.concurrency))
		add(writes, riverSynced+at, riverFull.written(c.tasks, c.concurrency))
		add(writes, liteSynced+at, liteFull.written(min(c.tasks, 200*c.concurrency), c.concurrency)) // backlite sleeps between tasks
	}
	add(sizes, own, mine.kept(20_000, "runner.db"))
	add(sizes, riverTuned, river2.kept(20_000, "river.db"))
	add(sizes, liteTuned, lite2.kept(20_000, "backlite.db"))
	names, err := costNames()
	for _, name := range names {
		add(costs, name, life(name, 10_000))
	}
	for _, f := range features() {
		add(inUse, f.name, f.life(10_000))
	}
	return list, err
}

func have(tool string) bool {
	_, err := exec.LookPath(tool)
	return err == nil
}
