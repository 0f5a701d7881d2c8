package main

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

// standing is how a database and its workers stand.
type standing struct {
	path        string
	dbSize, wal int64
	queues      []runner.Queue
	figures     map[string]runner.QueueStats // of each queue; nil: nobody asked
	held        runner.Holds
	workers     []runner.Worker
	schedules   []jobs.Schedule
	problems    []present.Problem
	trend       []admin.TimeBucket // the last hour by the minute; nil: nobody asked
	now         time.Time
	alive       int // workers that are not lost
	busy, slots int // of those
}

func readStatus(ctx context.Context, r *runner.Runner, now time.Time, only []string) (standing, error) {
	s := standing{path: r.Path(), now: now}
	s.dbSize, s.wal = admin.Size(r)
	var err error
	if s.queues, err = r.Queues(ctx); err != nil {
		return s, err
	}
	if only != nil {
		s.queues = slices.DeleteFunc(s.queues, func(q runner.Queue) bool { return !slices.Contains(only, q.Queue) })
		s.figures = map[string]runner.QueueStats{}
		for _, q := range s.queues {
			if s.figures[q.Queue], err = r.QueueStats(ctx, q.Queue); err != nil {
				return s, err
			}
		}
	}
	if s.held, err = r.Holds(ctx); err != nil {
		return s, err
	}
	if s.workers, err = r.Workers(ctx); err != nil {
		return s, err
	}
	if s.schedules, err = r.Schedules(ctx); err != nil {
		return s, err
	}
	alive := slices.DeleteFunc(slices.Clone(s.workers), func(w runner.Worker) bool { return w.State(now) == runner.WorkerLost })
	s.alive = len(alive)
	s.busy, s.slots = admin.BusySlots(alive)
	s.problems = present.Problems(s.queues, s.held.Pauses, s.workers, s.schedules, now)
	return s, nil
}

// record is the standing in JSON.
func (s *standing) record() record.Status {
	return record.Status{DB: s.path, DBBytes: s.dbSize, WALBytes: s.wal, Schema: admin.SchemaVersion(), Version: runner.Version,
		Paused:    admin.AllPaused(s.held.Pauses),
		Workers:   record.List(s.workers, func(w runner.Worker) record.Worker { return record.NewWorker(w, s.now) }),
		Schedules: record.List(s.schedules, func(schedule jobs.Schedule) record.Schedule { return record.NewSchedule(schedule, false) }),
		Problems: record.List(s.problems, func(p present.Problem) record.Problem {
			return record.Problem{Code: p.Code, Message: p.Message,
				Try: p.Try}
		}),
		Queues: record.List(s.queues, func(q runner.Queue) any {
			if s.figures != nil {
				return record.NewQueueStats(q, s.figures[q.Queue], s.now)
			}
			return record.NewQueue(q, s.now)
		})}
}

// lines writes the standing for other programs.
func (s *standing) lines(p *term.Printer) error {
	status := s.record()
	return cmp.Or(record.Lines(p, "queue", status.Queues), record.Lines(p, "worker", status.Workers),
		record.Lines(p, "schedule", status.Schedules),
		record.Lines(p, "problem", status.Problems))
}

// heldWord marks a queue that starts nothing now.
func (s *standing) heldWord(q runner.Queue) string {
	_, full := s.held.Closed[jobs.Target{Kind: jobs.QueueTarget, Name: q.Queue}]
	switch {
	case record.Paused(q):
		return "paused"
	case full:
		return "limit"
	}
	return ""
}
