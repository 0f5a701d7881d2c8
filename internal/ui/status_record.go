package ui

import (
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// NewLimit returns the record of a limit, with the number of tasks that use it now.
func NewLimit(l runner.LimitStatus) Record {
	return NewRecord("target", l.Target.String(), "running", Known(l.Running), "rate", Known(l.Rate),
		"per", Known(Seconds(l.Per)), "burst", Known(l.Burst), "in_use", l.InUse,
		"next_at", Stamp(l.NextAt), "updated_at", Stamp(l.UpdatedAt))
}

// NewQueue returns the record of a queue, with its numbers of tasks.
func NewQueue(q runner.Queue, now time.Time) Record {
	var oldest any
	if !q.Oldest.IsZero() {
		oldest = Seconds(max(now.Sub(q.Oldest), 0))
	}
	return NewRecord("queue", q.Queue, "paused", Paused(q), "paused_at", Stamp(q.Pause.At),
		"paused_by", Known(q.Pause.By), "paused_reason", Known(q.Pause.Reason), "paused_until", Stamp(q.Pause.Until),
		"pending", q.Counts[jobs.Pending], "scheduled", q.Counts[jobs.Scheduled], "blocked", q.Counts[jobs.Blocked],
		"retrying", q.Counts[jobs.Retrying], "running", q.Counts[jobs.Running], "completed_24h", q.Ended[jobs.Completed],
		"failed_24h", q.Ended[jobs.Failed], "cancelled_24h", q.Ended[jobs.Cancelled], "oldest_age", oldest)
}

// Paused reports whether a queue is paused.
func Paused(q runner.Queue) bool { return !q.Pause.At.IsZero() }

// NewWorker returns the record of a worker. The key queues is null if the worker
// serves all queues.
func NewWorker(w runner.Worker) Record {
	var queues []Record
	for _, q := range w.Queues {
		queues = append(queues, NewRecord("queue", q.Queue, "max", Known(q.Max)))
	}
	return NewRecord("id", w.ID, "name", w.Name, "host", w.Host, "pid", w.PID, "user", w.User, "version", w.Version,
		"state", w.State, "slots", w.Slots, "busy", len(w.Running), "queues", queues,
		"jobs", append([]string{}, w.Jobs...), "running", append([]int64{}, w.Running...),
		"started_at", Stamp(w.StartedAt), "beat_at", Stamp(w.BeatAt))
}

// NewProblem returns the record of a condition that needs attention.
func NewProblem(p Problem) Record {
	return NewRecord("code", p.Code, "message", p.Message, "try", p.Try)
}
