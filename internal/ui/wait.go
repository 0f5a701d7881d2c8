package ui

import (
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// maxAhead is the highest number of tasks ahead that Wait counts exactly.
const maxAhead = 10_000

// Wait says in one sentence why an unfinished task waits, or where it runs.
// It's empty for a finished task.
func Wait(w admin.Wait, t jobs.Task, now time.Time) string {
	switch w.Reason {
	case admin.WaitRunning:
		text := fmt.Sprintf("running on %s for %s", w.Worker, humanize.Took(now.Sub(t.StartedAt)))
		if !t.CancelRequestedAt.IsZero() {
			text += fmt.Sprintf(", asked to stop %s ago", humanize.Age(now.Sub(t.CancelRequestedAt)))
		}
		return text
	case admin.WaitStuck:
		return fmt.Sprintf("stuck on %s: it ignores that it should have stopped %s ago", w.Worker,
			humanize.Age(now.Sub(w.StuckSince)))
	case admin.WaitWorkerGone:
		return w.Worker + " is gone; another worker will take over"
	case admin.WaitNoSuccessor:
		return w.Worker + " is gone, and no worker runs that could take over"
	case admin.WaitScheduled:
		return "runs at " + humanize.Clock(t.RunAt, now)
	case admin.WaitBackoff:
		return fmt.Sprintf("waits for its next attempt at %s (backoff %s)", humanize.Clock(t.RunAt, now),
			humanize.Took(humanize.Rounded(w.Backoff)))
	case admin.WaitTaskPaused:
		return Pause(admin.Pause{At: t.PausedAt, By: t.PausedBy, Reason: t.PausedReason}, now)
	case admin.WaitDependency:
		return "waits for " + firstTask(w.Tasks)
	case admin.WaitLane:
		if len(w.Tasks) > 1 {
			return fmt.Sprintf("lane %s is held by %s, such as %d", t.Lane, humanize.Plural(len(w.Tasks), "task"), w.Tasks[0])
		}
		return fmt.Sprintf("lane %s is held by task %d", t.Lane, w.Tasks[0])
	case admin.WaitLaneFree:
		return "lane " + t.Lane + " is free: a worker gives it to the next"
	case admin.WaitLimit:
		return limitWait(w.Limit, now)
	case admin.WaitPaused:
		if w.AllQueues {
			return "all queues " + Pause(w.Pause, now)
		}
		return "queue " + Pause(w.Pause, now)
	case admin.WaitNoWorker:
		if len(w.Draining) > 0 {
			return "no worker runs (" + strings.Join(w.Draining, ", ") + ": draining)"
		}
		return "no worker runs"
	case admin.WaitNoQueue:
		return "no worker serves queue " + t.Queue
	case admin.WaitNoJob:
		return "no worker has job " + t.Job
	case admin.WaitSlots:
		return slotsWait(w)
	}
	return string(w.Reason)
}

// firstTask names a task, and how many there are beside it.
func firstTask(ids []int64) string {
	text := fmt.Sprintf("task %d", ids[0])
	if more := len(ids) - 1; more > 0 {
		text += fmt.Sprintf(" and %s more", humanize.Count(int64(more)))
	}
	return text
}

// slotsWait says what is ahead of a task that waits for a slot.
func slotsWait(w admin.Wait) string {
	ahead := humanize.Plural(w.Ahead, "task")
	if w.Ahead > maxAhead {
		ahead = "more than " + humanize.Plural(maxAhead, "task")
	}
	text := fmt.Sprintf("behind %s, %d/%d slots busy", ahead, w.Busy, w.Slots)
	if w.Ahead == 0 && w.Busy >= w.Slots && len(w.Tasks) > 0 {
		text += " with " + firstTask(w.Tasks)
	}
	return text
}

// Pause says when a pause began, who asked for it, when it ends and why.
func Pause(p admin.Pause, now time.Time) string {
	text := "paused " + humanize.Age(now.Sub(p.At)) + " ago"
	if p.By != "" {
		text += " by " + p.By
	}
	if !p.Until.IsZero() {
		text += ", until " + humanize.Clock(p.Until, now)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

func limitWait(l admin.LimitStatus, now time.Time) string {
	if l.Running > 0 && l.InUse >= l.Running {
		return fmt.Sprintf("limit %s: %d of %d running", l.Target, l.InUse, l.Running)
	}
	return fmt.Sprintf("limit %s: next start at %s", l.Target, humanize.Clock(l.NextAt, now))
}
