package runner

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// Problem is something that somebody should look at.
type Problem struct {
	Code    string // a word: paused, deletion_paused, lost_worker, no_worker, no_queue, no_job, failed, schedule_failed, schedule_skips
	Message string // one line, lower case
	Try     string // the command to type
	About   string // the queue, worker or schedule that it is about; empty: the whole database
}

// Problems lists what somebody should look at, each with the command to type. workers are those that gave a sign of life
// lately.
func Problems(queues []Queue, pauses Pauses, workers []WorkerInfo, schedules []jobs.Schedule, now time.Time) []Problem {
	list := []Problem{}
	add := func(code, about, try, format string, args ...any) {
		list = append(list, Problem{Code: code, Message: fmt.Sprintf(format, args...), Try: try, About: about})
	}
	pending := 0
	for _, q := range queues {
		pending += q.Counts[jobs.Pending]
		if own, ok := pauses[q.Queue]; ok && !pauses.All() {
			add("paused", q.Queue, "runner resume "+q.Queue, "%s has been paused for %s with %s waiting", q.Queue, humanize.Age(now.Sub(own.At)),
				humanize.Plural(q.Counts[jobs.Pending], "task"))
		}
	}
	if all, ok := pauses[AllQueues]; ok {
		add("paused", "", "runner resume --all", "all queues have been paused for %s with %s waiting", humanize.Age(now.Sub(all.At)), humanize.Plural(pending, "task"))
	}
	if pause, ok := pauses[DeletionPause]; ok {
		add("deletion_paused", "", resumeDeletion, "no old tasks are deleted for an hour: %s", pause.Reason)
	}
	var ready []WorkerInfo
	for _, w := range workers {
		switch state := WorkerState(w, now); {
		case state == WorkerReady:
			ready = append(ready, w)
		case state == WorkerLost && len(w.Running) > 0:
			add("lost_worker", w.Name, "runner list -s running --worker "+shellescape.Quote(w.Name), "worker %s has not been seen for %s and holds %s",
				w.Name, humanize.Age(now.Sub(w.BeatAt)), humanize.Plural(len(w.Running), "task"))
		}
	}
	waiting := 0
	for _, q := range queues {
		for _, n := range q.Counts { // running tasks, too, if nobody is there to run them
			waiting += n
		}
	}
	if len(ready) == 0 && waiting > 0 {
		add("no_worker", "", "runner work", "no worker runs, and %s", waits(waiting))
	} else if n := Ticking(schedules); len(ready) == 0 && n > 0 {
		add("no_worker", "", "runner work", "no worker runs, and %s", humanize.Does(n, "schedule", "ticks", "tick"))
	}
	for _, q := range queues {
		serving := slices.DeleteFunc(slices.Clone(ready), func(w WorkerInfo) bool { return !Serves(w, q.Queue) })
		switch n := q.Counts[jobs.Pending]; {
		case n == 0 || len(ready) == 0 || !q.Pause.At.IsZero():
		case len(serving) == 0:
			add("no_queue", q.Queue, "runner work -q "+q.Queue, "no worker serves queue %s, and %s", q.Queue, waits(n))
		default:
			for _, job := range slices.Sorted(maps.Keys(q.Jobs)) {
				if slices.ContainsFunc(serving, func(w WorkerInfo) bool { return slices.Contains(w.Jobs, job) }) {
					continue
				}
				try := "runner work -q " + q.Queue
				if job != jobs.CommandJob { // the program that registers it has to run: we do not know its name
					try = fmt.Sprintf("runner list -q %s -j %s -s pending", q.Queue, job)
				}
				add("no_job", q.Queue, try, "no worker of queue %s has job %s, and %s", q.Queue, job, waits(q.Jobs[job]))
			}
		}
	}
	for _, q := range queues {
		if n := q.Failed; n > 0 {
			add("failed", q.Queue, fmt.Sprintf("runner list -q %s -s failed --since 1d", q.Queue), "%s failed in %s in 24h", humanize.Plural(n, "task"), q.Queue)
		}
	}
	for _, s := range schedules {
		switch {
		case s.LastState == jobs.Failed:
			add("schedule_failed", s.Name, fmt.Sprintf("runner schedule show %s", s.Name), "the last task of schedule %s failed, due %s ago", s.Name, humanize.Age(now.Sub(s.LastAt)))
		case s.LastState != "" && !s.LastState.Finished() && s.Skipped > 0 && s.Overlap == jobs.OverlapSkip:
			add("schedule_skips", s.Name, fmt.Sprintf("runner show %d", s.LastTaskID), "schedule %s has skipped %s; its task %d, due %s ago, is %s", s.Name,
				humanize.Plural(int(s.Skipped), "tick"), s.LastTaskID, humanize.Age(now.Sub(s.LastAt)), s.LastState)
		}
	}
	return list
}

// waits is how many tasks wait: "1 task waits", "118 tasks wait".
func waits(n int) string { return humanize.Does(n, "task", "waits", "wait") }

// Ticking counts the schedules that are not paused.
func Ticking(schedules []jobs.Schedule) (n int) {
	for _, s := range schedules {
		if s.PausedAt.IsZero() {
			n++
		}
	}
	return n
}
