package main

import (
	"bufio"
	"fmt"
	"math"
)

// aim is a performance goal: a limit for a measured figure, or for the ratio of
// this figure to that of another system.
type aim struct {
	text     string
	workload *workload
	system   string
	than     string // name of the system to compare with, measured with the same workload; "" if the figure isn't a ratio
	low      bool   // true if the figure must not be higher than the aim; false if it must not be lower
	figure   float64
	unit     string // unit of the figure; × if the figure is a ratio
}

// aims returns all performance goals. Goals in bytes are half of the bytes that
// an older version of runner sent to the disk, and 0.6 of the size of its file.
// In that version, tasks had more columns.
func aims() []aim {
	ratio := func(text string, w *workload, system, than string, figure float64) aim {
		return aim{text, w, system, than, w.low, figure, "×"}
	}
	most := func(text string, w *workload, system string, figure float64) aim {
		return aim{text: text, workload: w, system: system, low: true, figure: figure, unit: w.unit}
	}
	least := func(text string, w *workload, system string, figure float64) aim {
		return aim{text: text, workload: w, system: system, figure: figure, unit: w.unit}
	}
	d1, d10, d100 := drains[1], drains[10], drains[100]
	return []aim{
		ratio("drain at concurrency 100 compared with River, tuned", d100, own, riverTuned, 10),
		ratio("drain at concurrency 100 compared with backlite, one connection", d100, own, liteTuned, 10),
		ratio("drain at concurrency 100 compared with plainjob", d100, own, plainOne, 3.5),
		ratio("drain at concurrency 100 compared with the bare loop", d100, own, limit, 0.7),
		ratio("drain at concurrency 100: runner with syncs compared with River without syncs", d100, ownDurable, riverTuned, 8),
		ratio("drain at concurrency 10 compared with River, tuned", d10, own, riverTuned, 9),
		ratio("drain one at a time compared with River, tuned", d1, own, riverTuned, 3),
		ratio("enqueue one by one compared with River", enqueueOne, own, riverTuned, 6),
		ratio("enqueue one by one compared with backlite", enqueueOne, own, liteTuned, 1),
		ratio("enqueue one by one compared with a bare INSERT", enqueueOne, own, limit, 0.7),
		ratio("enqueue from 100 goroutines: runner with syncs compared with River without syncs", enqueueMany, ownDurable, riverTuned, 20),
		least("runner enqueue --batch with a million lines", cli, own, 100_000),
		most("memory of runner enqueue --batch with a million lines", cliMemory, own, 128),
		most("time from enqueue to start in an idle worker, p50", latencies, own+", p50", 0.5),
		most("time from enqueue to start in an idle worker, p99", latencies, own+", p99", 3),
		most("time from enqueue to start in an idle worker of another process, p50", across, own+", p50", 1),
		most("time from enqueue to start in an idle worker of another process, p99", across, own+", p99", 4),
		most("processor time of an idle worker", idles, own, 0.05),
		most("time of an enqueue while another process drains at concurrency 10, p99", besides, own+", concurrency 10, p99", 15),
		most("time of an enqueue while another process drains at concurrency 100, p99", besides, own+", concurrency 100, p99", 15),
		least("speed of a drain at concurrency 10 while another process enqueues, compared with its full speed",
			keeps, own+", concurrency 10", 70),
		least("speed of a drain at concurrency 100 while another process enqueues, compared with its full speed",
			keeps, own+", concurrency 100", 70),
		ratio("500 commands compared with xargs -P2", commands, own, "xargs -P2", 0.6),
		ratio("500 commands compared with task-spooler", commands, own, "task-spooler -S 2", 1.5),
		ratio("500 commands compared with nq", commands, own, "nq", 1),
		ratio("500 commands compared with GNU parallel", commands, own, "GNU parallel -j2", 1),
		ratio("time of one runner enqueue compared with one INSERT by the sqlite3 shell",
			starts, "runner enqueue -- true", "sqlite3, one INSERT", 1.6),
		most("memory of one runner enqueue", startSize, "runner enqueue -- true", 17),
		ratio("time to claim and run a task with 5 M pending tasks in the database, divided by the time with 1 k pending tasks",
			growth, piles[1].name, piles[0].name, 1.3),
		ratio("time to claim and run a task with 5 M finished tasks in the database, divided by the time with 1 k pending tasks",
			growth, piles[2].name, piles[0].name, 1.3),
		ratio("time to claim and run a task with 1 M scheduled tasks in the database, divided by the time with 1 k pending tasks",
			growth, piles[3].name, piles[0].name, 1.3),
		ratio("time to claim and run a task with 1 M tasks of another job in the database, divided by the time with 1 k pending tasks",
			growth, piles[4].name, piles[0].name, 1.3),
		ratio("tasks per second of 8 processes compared with one process", many, "8 processes", "1 process", 0.7),
		most("longest wait of one of 8 processes for its next task", starves, "8 processes", 1000),
		most("bytes sent to the disk for one task, with syncs, one task at a time", writes, ownDurable+", 1 at a time", 21_800),
		most("bytes sent to the disk for one task, with syncs, 100 tasks at a time", writes, ownDurable+", 100 at a time", 950),
		most("size of the file for each completed task without output", sizes, own, 194),
		ratio("processor time of a task with all indexes and triggers, divided by the time with only those that it needs",
			costs, whole, unused, 1/0.88),
	}
}

// measuredAim is an aim and the value that was measured for it.
type measuredAim struct {
	aim
	value float64
}

// measuredAims returns those aims for which this run has measured a value.
func (r *report) measuredAims() (list []measuredAim) {
	medians := map[string]float64{}
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			medians[t.Name+"/"+row.System] = row.Median
		}
	}

	for _, a := range aims() {
		value, there := medians[a.workload.name+"/"+a.system]
		if a.than != "" {
			than, also := medians[a.workload.name+"/"+a.than]
			value, there = value/than, there && also
		}
		if there && !math.IsNaN(value) && !math.IsInf(value, 0) {
			list = append(list, measuredAim{a, value})
		}
	}

	return list
}

// aims prints a table of the aims and their measured values.
func (r *report) aims(w *bufio.Writer) {
	fmt.Fprint(w, "| figure | aim | measured | |\n|---|--:|--:|---|\n")
	for _, a := range r.measuredAims() {
		sign, verdict := "≥", "reached"
		if a.low {
			sign = "≤"
		}
		if a.low == (a.value > a.figure) && a.value != a.figure {
			verdict = "**missed**"
		}
		fmt.Fprintf(w, "| %s | %s %s | %s | %s |\n", a.text, sign, figure(a.figure, a.unit), figure(a.value, a.unit), verdict)
	}

	fmt.Fprintln(w)
}
