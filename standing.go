package main

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/present"
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
func (s *standing) record() jsonStatus {
	return jsonStatus{DB: s.path, DBBytes: s.dbSize, WALBytes: s.wal, Schema: admin.SchemaVersion(), Version: runner.Version,
		Paused:    admin.AllPaused(s.held.Pauses),
		Workers:   recordsOf(s.workers, func(w runner.Worker) jsonWorker { return workerRecord(w, s.now) }),
		Schedules: recordsOf(s.schedules, func(schedule jobs.Schedule) jsonSchedule { return scheduleRecord(schedule, false) }),
		Problems:  recordsOf(s.problems, func(p present.Problem) jsonProblem { return jsonProblem{p.Code, p.Message, p.Try} }),
		Queues: recordsOf(s.queues, func(q runner.Queue) any {
			if s.figures != nil {
				return queueFiguresRecord(q, s.figures[q.Queue], s.now)
			}
			return queueRecord(q, s.now)
		})}
}

// lines writes the standing for other programs.
func (s *standing) lines(p *term.Printer) error {
	status := s.record()
	return cmp.Or(lines(p, "queue", status.Queues), lines(p, "worker", status.Workers), lines(p, "schedule", status.Schedules),
		lines(p, "problem", status.Problems))
}

// heldWord marks a queue that starts nothing now.
func (s *standing) heldWord(q runner.Queue) string {
	_, full := s.held.Closed[jobs.Target{Kind: jobs.QueueTarget, Name: q.Queue}]
	switch {
	case paused(q):
		return "paused"
	case full:
		return "limit"
	}
	return ""
}
