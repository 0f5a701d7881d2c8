package ui

import (
	"fmt"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
)

// NewQueue returns a queue's record, with its numbers of tasks. held is a word
// that says why they can't start, or empty.
func NewQueue(q admin.QueueStatus, now time.Time, held string) Record {
	count := func(key string, n int, name string, drop int) Member {
		return Member{Key: key, Value: n, Name: name, Text: humanize.Count(int64(n)), Right: true, Drop: drop}
	}

	oldest := Member{Key: "oldest_age", Name: "OLDEST", Text: "–", Right: true, Drop: 5}
	if !q.Oldest.IsZero() {
		age := max(now.Sub(q.Oldest), 0)
		oldest.Value, oldest.Text = Seconds(age), humanize.Age(age)
	}

	return NewRecord(
		Member{Key: "queue", Value: q.Name, Name: "QUEUE", Narrow: true},
		"paused", Paused(q), "paused_at", Stamp(q.Pause.At), "paused_by", Known(q.Pause.By),
		"paused_reason", Known(q.Pause.Reason), "paused_until", Stamp(q.Pause.Until),
		count("pending", q.Counts[jobs.Pending], "PENDING", 0),
		count("scheduled", q.Counts[jobs.Scheduled], "SCHED", 2),
		count("blocked", q.Counts[jobs.Blocked], "BLOCK", 1),
		count("retrying", q.Counts[jobs.Retrying], "RETRY", 3),
		count("running", q.Counts[jobs.Running], "RUN", 8),
		count("", q.Ended[jobs.Failed], "FAILED 24H", 7),
		count("completed_24h", q.Ended[jobs.Completed], "DONE 24H", 4),
		"failed_24h", q.Ended[jobs.Failed], "cancelled_24h", q.Ended[jobs.Cancelled],
		oldest,
		Member{Name: Untitled, Text: held, Drop: 6})
}

// Paused reports whether a queue is paused.
func Paused(q admin.QueueStatus) bool { return !q.Pause.At.IsZero() }

// NewWorker returns a worker's record. queues is null if it serves all queues.
func NewWorker(w admin.Worker, now time.Time) Record {
	var queues []Record
	for _, q := range w.Queues {
		queues = append(queues, NewRecord("queue", q.Name, "max", Known(q.Max)))
	}

	busy, state := len(w.Running), string(w.State)
	if w.State == admin.WorkerReady {
		state = ""
	}

	return NewRecord(
		"id", w.ID,
		Member{Key: "name", Value: w.Name, Name: "WORKER", Narrow: true},
		"host", w.Host, "pid", w.PID, "user", w.User, "version", w.Version, "state", string(w.State),
		Member{Key: "slots", Value: w.Slots, Name: "SLOTS", Text: fmt.Sprintf("%d/%d", busy, w.Slots), Right: true},
		"busy", busy,
		Member{Key: "queues", Value: queues, Name: "QUEUES", Text: ServedQueues(w, ","), Narrow: true, Drop: 1},
		"jobs", append([]string{}, w.Jobs...), "running", append([]int64{}, w.Running...),
		Member{Key: "started_at", Value: Stamp(w.StartedAt), Name: "UP", Text: humanize.Age(now.Sub(w.StartedAt)), Drop: 2},
		Member{Key: "beat_at", Value: Stamp(w.BeatAt), Name: "SEEN", Text: humanize.Age(now.Sub(w.BeatAt)) + " ago"},
		Member{Name: Untitled, Text: state})
}

// NewProblem returns the record of a condition that needs attention.
func NewProblem(p Problem) Record {
	return NewRecord("code", p.Code, "message", p.Message, "try", p.Try)
}
