package view

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Status is the state of a database and its workers.
type Status struct {
	Path        string
	DBSize, wal int64
	Queues      []runner.Queue
	figures     map[string]runner.QueueStats // statistics of each queue; nil if not requested
	Held        runner.Holds
	Workers     []runner.Worker
	Schedules   []jobs.Schedule
	Problems    []present.Problem
	Trend       []admin.TimeBucket // the last hour by minute; nil if not requested
	Now         time.Time
	Alive       int // number of workers that are not lost
	Busy, Slots int // slots of these workers
}

func ReadStatus(ctx context.Context, r *runner.Runner, now time.Time, only []string) (Status, error) {
	s := Status{Path: r.Path(), Now: now}
	s.DBSize, s.wal = admin.Size(r)
	var err error
	if s.Queues, err = r.Queues(ctx); err != nil {
		return s, err
	}
	if only != nil {
		s.Queues = slices.DeleteFunc(s.Queues, func(q runner.Queue) bool { return !slices.Contains(only, q.Queue) })
		s.figures = map[string]runner.QueueStats{}
		for _, q := range s.Queues {
			if s.figures[q.Queue], err = r.QueueStats(ctx, q.Queue); err != nil {
				return s, err
			}
		}
	}
	if s.Held, err = r.Holds(ctx); err != nil {
		return s, err
	}
	if s.Workers, err = r.Workers(ctx); err != nil {
		return s, err
	}
	if s.Schedules, err = r.Schedules(ctx); err != nil {
		return s, err
	}
	alive := slices.DeleteFunc(slices.Clone(s.Workers), func(w runner.Worker) bool { return w.State(now) == runner.WorkerLost })
	s.Alive = len(alive)
	s.Busy, s.Slots = admin.BusySlots(alive)
	s.Problems = present.Problems(s.Queues, s.Held.Pauses, s.Workers, s.Schedules, now)
	return s, nil
}

// Record returns the JSON record of the status.
func (s *Status) Record() record.Status {
	return record.Status{DB: s.Path, DBBytes: s.DBSize, WALBytes: s.wal, Schema: admin.SchemaVersion(), Version: runner.Version,
		Paused:    admin.AllPaused(s.Held.Pauses),
		Workers:   record.List(s.Workers, func(w runner.Worker) record.Worker { return record.NewWorker(w, s.Now) }),
		Schedules: record.List(s.Schedules, func(schedule jobs.Schedule) record.Schedule { return record.NewSchedule(schedule, false) }),
		Problems: record.List(s.Problems, func(p present.Problem) record.Problem {
			return record.Problem{Code: p.Code, Message: p.Message,
				Try: p.Try}
		}),
		Queues: record.List(s.Queues, func(q runner.Queue) any {
			if s.figures != nil {
				return record.NewQueueStats(q, s.figures[q.Queue], s.Now)
			}
			return record.NewQueue(q, s.Now)
		})}
}

// Lines writes the status as lines for other programs.
func (s *Status) Lines(p *term.Printer) error {
	status := s.Record()
	return cmp.Or(record.Lines(p, "queue", status.Queues), record.Lines(p, "worker", status.Workers),
		record.Lines(p, "schedule", status.Schedules),
		record.Lines(p, "problem", status.Problems))
}

// heldWord returns the mark of a queue whose tasks cannot start now.
func (s *Status) heldWord(q runner.Queue) string {
	_, full := s.Held.Closed[jobs.Target{Kind: jobs.QueueTarget, Name: q.Queue}]
	switch {
	case record.Paused(q):
		return "paused"
	case full:
		return "limit"
	}
	return ""
}
