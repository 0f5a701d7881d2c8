package record

import (
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// These types are the records that the commands status, pause and limit print. A comment in task.go has the rules for records.

// Limit is the record of a limit, with the number of tasks that use it now.
type Limit struct {
	Target    string   `json:"target"`
	Running   *int     `json:"running"`
	Rate      *int     `json:"rate"`
	Per       *Seconds `json:"per"`
	Burst     *int     `json:"burst"`
	InUse     int      `json:"in_use"`
	NextAt    Stamp    `json:"next_at"`
	UpdatedAt Stamp    `json:"updated_at"`
}

func NewLimit(l runner.LimitStatus) Limit {
	return Limit{Target: l.Target.String(), Running: Known(l.Running), Rate: Known(l.Rate), Per: Known(Seconds(l.Per)),
		Burst: Known(l.Burst), InUse: l.InUse, NextAt: Stamp(l.NextAt), UpdatedAt: Stamp(l.UpdatedAt)}
}

// LimitRemoved is the record that "limit remove" prints for a limit.
type LimitRemoved struct {
	Target  string `json:"target"`
	Removed bool   `json:"removed"`
}

// Queue is the record of a queue, with its numbers of tasks.
type Queue struct {
	Queue        string   `json:"queue"`
	Paused       bool     `json:"paused"`
	PausedAt     Stamp    `json:"paused_at"`
	PausedBy     *string  `json:"paused_by"`
	PausedReason *string  `json:"paused_reason"`
	PausedUntil  Stamp    `json:"paused_until"`
	Pending      int      `json:"pending"`
	Scheduled    int      `json:"scheduled"`
	Blocked      int      `json:"blocked"`
	Retrying     int      `json:"retrying"`
	Running      int      `json:"running"`
	Completed24h int      `json:"completed_24h"`
	Failed24h    int      `json:"failed_24h"`
	Cancelled24h int      `json:"cancelled_24h"`
	OldestAge    *Seconds `json:"oldest_age"`
}

// Paused reports whether a queue is paused.
func Paused(q runner.Queue) bool { return !q.Pause.At.IsZero() }

func NewQueue(q runner.Queue, now time.Time) Queue {
	r := Queue{Queue: q.Queue, Pending: q.Counts[jobs.Pending], Scheduled: q.Counts[jobs.Scheduled], Blocked: q.Counts[jobs.Blocked],
		Retrying: q.Counts[jobs.Retrying], Running: q.Counts[jobs.Running], Completed24h: q.Ended[jobs.Completed],
		Failed24h: q.Ended[jobs.Failed], Cancelled24h: q.Ended[jobs.Cancelled],
		Paused: Paused(q), PausedAt: Stamp(q.Pause.At), PausedBy: Known(q.Pause.By), PausedReason: Known(q.Pause.Reason),
		PausedUntil: Stamp(q.Pause.Until)}
	if !q.Oldest.IsZero() {
		r.OldestAge = new(Seconds(max(now.Sub(q.Oldest), 0)))
	}
	return r
}

// QueueStats is the record of a queue that "status -q" prints. It adds statistics about the last hour.
type QueueStats struct {
	Queue
	WaitP50 *Seconds `json:"wait_p50"`
	WaitP95 *Seconds `json:"wait_p95"`
	RunP50  *Seconds `json:"run_p50"`
	RunP95  *Seconds `json:"run_p95"`
}

func NewQueueStats(q runner.Queue, f admin.QueueStats, now time.Time) QueueStats {
	r := QueueStats{Queue: NewQueue(q, now)}
	if f.Tasks > 0 {
		r.WaitP50, r.WaitP95 = new(Seconds(f.WaitP50)), new(Seconds(f.WaitP95))
		r.RunP50, r.RunP95 = new(Seconds(f.RunP50)), new(Seconds(f.RunP95))
	}
	return r
}

// Worker is the record of a worker. Queues is null if the worker serves all queues.
type Worker struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Host      string     `json:"host"`
	PID       int        `json:"pid"`
	User      string     `json:"user"`
	Version   string     `json:"version"`
	State     string     `json:"state"`
	Slots     int        `json:"slots"`
	Busy      int        `json:"busy"`
	Queues    []QueueMax `json:"queues"`
	Jobs      []string   `json:"jobs"`
	Running   []int64    `json:"running"`
	StartedAt Stamp      `json:"started_at"`
	BeatAt    Stamp      `json:"beat_at"`
	Leaked    int        `json:"leaked"`
}

// QueueMax is a queue that a worker serves. Max is the maximum number of its tasks that run in this worker, or null if all slots may run
// them.
type QueueMax struct {
	Queue string `json:"queue"`
	Max   *int   `json:"max"`
}

func NewWorker(w runner.Worker) Worker {
	r := Worker{ID: w.ID, Name: w.Name, Host: w.Host, PID: w.PID, User: w.User, Version: w.Version, State: w.State,
		Slots: w.Slots, Busy: len(w.Running), Jobs: append([]string{}, w.Jobs...), Running: append([]int64{}, w.Running...),
		Leaked:    w.Leaked,
		StartedAt: Stamp(w.StartedAt), BeatAt: Stamp(w.BeatAt)}
	for _, q := range w.Queues {
		r.Queues = append(r.Queues, QueueMax{q.Queue, Known(q.Max)})
	}
	return r
}

// Status is the record that the command status prints.
type Status struct {
	DB          string     `json:"db"`
	DBBytes     int64      `json:"db_bytes"`
	WALBytes    int64      `json:"wal_bytes"`
	Schema      int        `json:"schema"`
	Version     string     `json:"version"`
	Paused      bool       `json:"paused"`
	PausedTasks int        `json:"paused_tasks"`
	Workers     []Worker   `json:"workers"`
	Queues      []any      `json:"queues"` // elements are of type Queue; with -q they are of type QueueStats
	Schedules   []Schedule `json:"schedules"`
	Problems    []Problem  `json:"problems"`
}

// Problem is the record of a condition that needs attention.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Try     string `json:"try"`
}
