package main

import (
	"context"
	"slices"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// standing is how a database and its workers stand.
type standing struct {
	path        string
	dbSize, wal int64
	queues      []runner.Queue
	figures     map[string]runner.Figures // of each queue; nil: nobody asked
	held        runner.Gates
	workers     []runner.WorkerInfo
	schedules   []jobs.Schedule
	problems    []runner.Problem
	trend       []runner.Stretch // the last hour by the minute; nil: nobody asked
	now         time.Time
	alive       int // workers that are not lost
	busy, slots int // of those
}

func readStatus(ctx context.Context, r *runner.Runner, now time.Time, only []string) (standing, error) {
	s := standing{path: r.Path(), now: now}
	s.dbSize, s.wal = r.Size()
	var err error
	if s.queues, err = r.Queues(ctx); err != nil {
		return s, err
	}
	if only != nil {
		s.queues = slices.DeleteFunc(s.queues, func(q runner.Queue) bool { return !slices.Contains(only, q.Queue) })
		s.figures = map[string]runner.Figures{}
		for _, q := range s.queues {
			if s.figures[q.Queue], err = r.Figures(ctx, q.Queue); err != nil {
				return s, err
			}
		}
	}
	if s.held, err = r.Gates(ctx); err != nil {
		return s, err
	}
	if s.workers, err = r.Workers(ctx); err != nil {
		return s, err
	}
	if s.schedules, err = r.Schedules(ctx); err != nil {
		return s, err
	}
	alive := slices.DeleteFunc(slices.Clone(s.workers), func(w runner.WorkerInfo) bool { return runner.WorkerState(w, now) == runner.WorkerLost })
	s.alive = len(alive)
	s.busy, s.slots = runner.BusySlots(alive)
	s.problems = runner.Problems(s.queues, s.held.Pauses, s.workers, s.schedules, now)
	return s, nil
}

// record is the standing in JSON.
func (s *standing) record() jsonStatus {
	status := jsonStatus{DB: s.path, DBBytes: s.dbSize, WALBytes: s.wal, Schema: runner.SchemaVersion(), Version: runner.Version,
		Paused: s.held.Pauses.All(), Workers: []jsonWorker{}, Queues: []any{}, Schedules: []jsonSchedule{}, Problems: []jsonProblem{}}
	for _, w := range s.workers {
		status.Workers = append(status.Workers, workerRecord(w, s.now))
	}
	for _, q := range s.queues {
		if s.figures != nil {
			status.Queues = append(status.Queues, queueFiguresRecord(q, s.figures[q.Queue], s.now))
			continue
		}
		status.Queues = append(status.Queues, queueRecord(q, s.now))
	}
	for _, problem := range s.problems {
		status.Problems = append(status.Problems, jsonProblem{problem.Code, problem.Message, problem.Try})
	}
	for _, schedule := range s.schedules {
		status.Schedules = append(status.Schedules, scheduleRecord(schedule, false))
	}
	return status
}

// lines writes the standing for other programs.
func (s *standing) lines(p *printer) error {
	status := s.record()
	for _, q := range status.Queues {
		if err := p.values("queue", q); err != nil {
			return err
		}
	}
	for _, w := range status.Workers {
		if err := p.values("worker", w); err != nil {
			return err
		}
	}
	for _, schedule := range status.Schedules {
		if err := p.values("schedule", schedule); err != nil {
			return err
		}
	}
	for _, problem := range status.Problems {
		if err := p.values("problem", problem); err != nil {
			return err
		}
	}
	return nil
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
