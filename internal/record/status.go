package record

import (
	"time"

	"example.com/runner/internal/present"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// NewLimit returns the record of a limit, with the number of tasks that use it now.
func NewLimit(l runner.LimitStatus) term.Record {
	return term.NewRecord("target", l.Target.String(), "running", term.Known(l.Running), "rate", term.Known(l.Rate),
		"per", term.Known(term.Seconds(l.Per)), "burst", term.Known(l.Burst), "in_use", l.InUse,
		"next_at", term.Stamp(l.NextAt), "updated_at", term.Stamp(l.UpdatedAt))
}

// NewQueue returns the record of a queue, with its numbers of tasks.
func NewQueue(q runner.Queue, now time.Time) term.Record {
	var oldest any
	if !q.Oldest.IsZero() {
		oldest = term.Seconds(max(now.Sub(q.Oldest), 0))
	}
	return term.NewRecord("queue", q.Queue, "paused", Paused(q), "paused_at", term.Stamp(q.Pause.At),
		"paused_by", term.Known(q.Pause.By), "paused_reason", term.Known(q.Pause.Reason), "paused_until", term.Stamp(q.Pause.Until),
		"pending", q.Counts[jobs.Pending], "scheduled", q.Counts[jobs.Scheduled], "blocked", q.Counts[jobs.Blocked],
		"retrying", q.Counts[jobs.Retrying], "running", q.Counts[jobs.Running], "completed_24h", q.Ended[jobs.Completed],
		"failed_24h", q.Ended[jobs.Failed], "cancelled_24h", q.Ended[jobs.Cancelled], "oldest_age", oldest)
}

// Paused reports whether a queue is paused.
func Paused(q runner.Queue) bool { return !q.Pause.At.IsZero() }

// NewWorker returns the record of a worker. The key queues is null if the worker
// serves all queues.
func NewWorker(w runner.Worker) term.Record {
	var queues []term.Record
	for _, q := range w.Queues {
		queues = append(queues, term.NewRecord("queue", q.Queue, "max", term.Known(q.Max)))
	}
	return term.NewRecord("id", w.ID, "name", w.Name, "host", w.Host, "pid", w.PID, "user", w.User, "version", w.Version,
		"state", w.State, "slots", w.Slots, "busy", len(w.Running), "queues", queues,
		"jobs", append([]string{}, w.Jobs...), "running", append([]int64{}, w.Running...),
		"started_at", term.Stamp(w.StartedAt), "beat_at", term.Stamp(w.BeatAt))
}

// NewProblem returns the record of a condition that needs attention.
func NewProblem(p present.Problem) term.Record {
	return term.NewRecord("code", p.Code, "message", p.Message, "try", p.Try)
}
