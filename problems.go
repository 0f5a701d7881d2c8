package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// problems lists what somebody should look at, each with the command to type. workers are those that gave a sign of life
// lately.
func problems(queues []runner.Queue, pauses runner.Pauses, workers []runner.WorkerInfo, schedules []jobs.Schedule, now time.Time) []jsonProblem {
	list := []jsonProblem{}
	add := func(code, try, format string, args ...any) {
		list = append(list, jsonProblem{Code: code, Message: fmt.Sprintf(format, args...), Try: try})
	}
	pending := 0
	for _, q := range queues {
		pending += q.Counts[jobs.Pending]
		if own, ok := pauses[q.Queue]; ok && !pauses.All() {
			add("paused", "runner resume "+q.Queue, "%s has been paused for %s with %s waiting", q.Queue, age(now.Sub(own.At)),
				plural(q.Counts[jobs.Pending], "task"))
		}
	}
	if all, ok := pauses[runner.AllQueues]; ok {
		add("paused", "runner resume --all", "all queues have been paused for %s with %s waiting", age(now.Sub(all.At)), plural(pending, "task"))
	}
	var ready []runner.WorkerInfo
	for _, w := range workers {
		switch state := workerState(w, now); {
		case state == workerReady:
			ready = append(ready, w)
		case state == workerLost && len(w.Running) > 0:
			add("lost_worker", "runner list -s running --worker "+shellescape.Quote(w.Name), "worker %s has not been seen for %s and holds %s",
				w.Name, age(now.Sub(w.BeatAt)), plural(len(w.Running), "task"))
		}
	}
	waiting := 0
	for _, q := range queues {
		for _, n := range q.Counts { // running tasks, too, if nobody is there to run them
			waiting += n
		}
	}
	if len(ready) == 0 && waiting > 0 {
		add("no_worker", "runner work", "no worker runs, and %s", wait(waiting))
	} else if n := ticking(schedules); len(ready) == 0 && n > 0 {
		add("no_worker", "runner work", "no worker runs, and %s", ticksOf(n))
	}
	for _, q := range queues {
		serving := slices.DeleteFunc(slices.Clone(ready), func(w runner.WorkerInfo) bool { return !serves(w, q.Queue) })
		switch n := q.Counts[jobs.Pending]; {
		case n == 0 || len(ready) == 0 || paused(q):
		case len(serving) == 0:
			add("no_queue", "runner work -q "+q.Queue, "no worker serves queue %s, and %s", q.Queue, wait(n))
		default:
			for _, job := range slices.Sorted(maps.Keys(q.Jobs)) {
				if slices.ContainsFunc(serving, func(w runner.WorkerInfo) bool { return slices.Contains(w.Jobs, job) }) {
					continue
				}
				try := "runner work -q " + q.Queue
				if job != jobs.CommandJob { // the program that registers it has to run: we do not know its name
					try = fmt.Sprintf("runner list -q %s -j %s -s pending", q.Queue, job)
				}
				add("no_job", try, "no worker of queue %s has job %s, and %s", q.Queue, job, wait(q.Jobs[job]))
			}
		}
	}
	for _, q := range queues {
		if n := q.Ended[jobs.Failed]; n > 0 {
			add("failed", fmt.Sprintf("runner list -q %s -s failed --since 1d", q.Queue), "%s failed in %s in 24h", plural(n, "task"), q.Queue)
		}
	}
	for _, s := range schedules {
		switch {
		case s.LastState == jobs.Failed:
			add("schedule_failed", fmt.Sprintf("runner schedule show %s", s.Name), "the last task of schedule %s failed, due %s ago", s.Name, age(now.Sub(s.LastAt)))
		case s.LastState != "" && !s.LastState.Finished() && s.Skipped > 0 && s.Overlap == jobs.OverlapSkip:
			add("schedule_skips", fmt.Sprintf("runner show %d", s.LastTaskID), "schedule %s has skipped %s; its task %d, due %s ago, is %s", s.Name,
				plural(int(s.Skipped), "tick"), s.LastTaskID, age(now.Sub(s.LastAt)), s.LastState)
		}
	}
	return list
}

// ticking counts the schedules that are not paused.
func ticking(schedules []jobs.Schedule) (n int) {
	for _, s := range schedules {
		if s.PausedAt.IsZero() {
			n++
		}
	}
	return n
}

// ticksOf is "1 schedule ticks", "3 schedules tick".
func ticksOf(n int) string {
	if n == 1 {
		return "1 schedule ticks"
	}
	return plural(n, "schedule") + " tick"
}

// wait is how many tasks wait: "1 task waits", "118 tasks wait".
func wait(n int) string {
	if n == 1 {
		return "1 task waits"
	}
	return plural(n, "task") + " wait"
}
