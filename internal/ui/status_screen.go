package ui

import (
	"context"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// StatusScreen is what the command status shows about a database and its workers.
type StatusScreen struct {
	Status
	Path        string
	DBSize, wal int64
	Now         time.Time
}

// ReadStatusScreen reads the status of the given queues, or of all if only is nil.
func ReadStatusScreen(ctx context.Context, r *runner.Runner, now time.Time, only []string) (s StatusScreen, err error) {
	s = StatusScreen{Path: r.Path(), Now: now}
	s.DBSize, s.wal = admin.Store(r).Size()
	s.Status, err = ReadStatus(ctx, r, now, only)
	return s, err
}

// WarnFrozen says on stderr that the database was moved, so what it holds is
// old.
func WarnFrozen(ctx context.Context, r *runner.Runner, p *Printer) error {
	frozen, err := admin.Store(r).Frozen(ctx)
	if frozen != "" {
		p.Say("%s; what it holds is old", frozen)
	}
	return err
}

// Record returns the record of the status.
func (s *StatusScreen) Record() Record {
	return NewRecord("db", s.Path, "db_bytes", s.DBSize, "wal_bytes", s.wal, "schema", admin.SchemaVersion(),
		"version", runner.Version, "paused", admin.AllPaused(s.Holds.Pauses), "paused_tasks", s.PausedTasks,
		"workers", Records(s.Workers, NewWorker),
		"queues", Records(s.Queues, func(q runner.Queue) Record { return NewQueue(q, s.Now) }),
		"schedules", Records(s.Schedules, func(schedule jobs.Schedule) Record { return NewSchedule(schedule, false) }),
		"problems", Records(s.Problems, NewProblem))
}

// Lines prints the status as lines with tabs, for other programs.
func (s *StatusScreen) Lines(p *Printer) {
	for _, m := range s.Record().Only("queues", "workers", "schedules", "problems") {
		printRecords(p, strings.TrimSuffix(m.Key, "s"), m.Value.([]Record))
	}
}

// printRecords prints each record of a list as a line with tabs that begins with
// a word.
func printRecords(p *Printer, word string, list []Record) {
	for _, r := range list {
		p.Fields(append([]any{word}, r.Values()...)...)
	}
}

// heldWord says in a word why the tasks of a queue cannot start now. It returns an empty string if they can start.
func (s *StatusScreen) heldWord(q runner.Queue) string {
	limits := s.Holds.Limits
	switch {
	case Paused(q):
		return "paused"
	case limits.IsClosed(jobs.QueueTarget, q.Queue), limits.IsClosed(jobs.AllTarget, ""):
		return "limit"
	}
	return ""
}
