package main

import (
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// The records of what status, pause and limit print; see json.go.

// jsonLimit is a limit and how it stands.
type jsonLimit struct {
	Target    string   `json:"target"`
	Running   *int     `json:"running"`
	Rate      *int     `json:"rate"`
	Per       *seconds `json:"per"`
	Burst     *int     `json:"burst"`
	InUse     int      `json:"in_use"`
	NextAt    stamp    `json:"next_at"`
	UpdatedAt stamp    `json:"updated_at"`
}

func limitRecord(l runner.LimitStatus) jsonLimit {
	return jsonLimit{Target: l.Target.String(), Running: known(l.Running), Rate: known(l.Rate), Per: known(seconds(l.Per)),
		Burst: known(l.Burst), InUse: l.InUse, NextAt: stamp(l.NextAt), UpdatedAt: stamp(l.UpdatedAt)}
}

// jsonLimitRemoved is what limit remove prints for a limit.
type jsonLimitRemoved struct {
	Target  string `json:"target"`
	Removed bool   `json:"removed"`
}

// jsonQueue is what is in a queue.
type jsonQueue struct {
	Queue        string   `json:"queue"`
	Paused       bool     `json:"paused"`
	PausedAt     stamp    `json:"paused_at"`
	PausedBy     *string  `json:"paused_by"`
	PausedReason *string  `json:"paused_reason"`
	Pending      int      `json:"pending"`
	Scheduled    int      `json:"scheduled"`
	Blocked      int      `json:"blocked"`
	Retrying     int      `json:"retrying"`
	Running      int      `json:"running"`
	Completed24h int      `json:"completed_24h"`
	Failed24h    int      `json:"failed_24h"`
	Cancelled24h int      `json:"cancelled_24h"`
	OldestAge    *seconds `json:"oldest_age"`
}

// paused says whether no task of a queue starts.
func paused(q runner.Queue) bool { return !q.Pause.At.IsZero() }

func queueRecord(q runner.Queue, now time.Time) jsonQueue {
	r := jsonQueue{Queue: q.Queue, Pending: q.Counts[jobs.Pending], Scheduled: q.Counts[jobs.Scheduled], Blocked: q.Counts[jobs.Blocked],
		Retrying: q.Counts[jobs.Retrying], Running: q.Counts[jobs.Running], Completed24h: q.Ended[jobs.Completed],
		Failed24h: q.Ended[jobs.Failed], Cancelled24h: q.Ended[jobs.Cancelled],
		Paused: paused(q), PausedAt: stamp(q.Pause.At), PausedBy: known(q.Pause.By), PausedReason: known(q.Pause.Reason)}
	if !q.Oldest.IsZero() {
		r.OldestAge = new(seconds(max(now.Sub(q.Oldest), 0)))
	}
	return r
}

// jsonQueueFigures is a queue as status -q prints it: with figures of the last hour.
type jsonQueueFigures struct {
	jsonQueue
	WaitP50   *seconds `json:"wait_p50"`
	WaitP95   *seconds `json:"wait_p95"`
	RunP50    *seconds `json:"run_p50"`
	RunP95    *seconds `json:"run_p95"`
	Started1h int      `json:"started_1h"`
}

func queueFiguresRecord(q runner.Queue, f runner.QueueStats, now time.Time) jsonQueueFigures {
	r := jsonQueueFigures{jsonQueue: queueRecord(q, now), Started1h: f.Starts}
	if f.Tasks > 0 {
		r.WaitP50, r.WaitP95 = new(seconds(f.WaitP50)), new(seconds(f.WaitP95))
		r.RunP50, r.RunP95 = new(seconds(f.RunP50)), new(seconds(f.RunP95))
	}
	return r
}

// jsonWorker is a worker. Queues null: it serves all of them.
type jsonWorker struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Host      string         `json:"host"`
	PID       int            `json:"pid"`
	User      string         `json:"user"`
	Version   string         `json:"version"`
	State     string         `json:"state"`
	Slots     int            `json:"slots"`
	Busy      int            `json:"busy"`
	Queues    []jsonQueueMax `json:"queues"`
	Jobs      []string       `json:"jobs"`
	Running   []int64        `json:"running"`
	StartedAt stamp          `json:"started_at"`
	BeatAt    stamp          `json:"beat_at"`
}

// jsonQueueMax is a queue that a worker serves. Max null: as many of its tasks as there are slots.
type jsonQueueMax struct {
	Queue string `json:"queue"`
	Max   *int   `json:"max"`
}

func workerRecord(w runner.Worker, now time.Time) jsonWorker {
	r := jsonWorker{ID: w.ID, Name: w.Name, Host: w.Host, PID: w.PID, User: w.User, Version: w.Version, State: w.State(now),
		Slots: w.Slots, Busy: len(w.Running), Jobs: append([]string{}, w.Jobs...), Running: append([]int64{}, w.Running...),
		StartedAt: stamp(w.StartedAt), BeatAt: stamp(w.BeatAt)}
	for _, q := range w.Queues {
		r.Queues = append(r.Queues, jsonQueueMax{q.Queue, known(q.Max)})
	}
	return r
}

// jsonStatus is what status prints.
type jsonStatus struct {
	DB        string         `json:"db"`
	DBBytes   int64          `json:"db_bytes"`
	WALBytes  int64          `json:"wal_bytes"`
	Schema    int            `json:"schema"`
	Version   string         `json:"version"`
	Paused    bool           `json:"paused"`
	Workers   []jsonWorker   `json:"workers"`
	Queues    []any          `json:"queues"` // jsonQueue, with -q jsonQueueFigures
	Schedules []jsonSchedule `json:"schedules"`
	Problems  []jsonProblem  `json:"problems"`
}

// jsonProblem is something that status thinks somebody should look at.
type jsonProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Try     string `json:"try"`
}
