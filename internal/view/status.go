package view

import (
	"context"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Status is what the command status shows about a database and its workers.
type Status struct {
	present.Status
	Path        string
	DBSize, wal int64
	Now         time.Time
}

// ReadStatus reads the status of the given queues, or of all if only is nil.
func ReadStatus(ctx context.Context, r *runner.Runner, now time.Time, only []string) (s Status, err error) {
	s = Status{Path: r.Path(), Now: now}
	s.DBSize, s.wal = admin.Store(r).Size()
	s.Status, err = present.ReadStatus(ctx, r, now, only)
	return s, err
}

// WarnFrozen says on stderr that the database was moved, so what it holds is
// old.
func WarnFrozen(ctx context.Context, r *runner.Runner, p *term.Printer) error {
	frozen, err := admin.Store(r).Frozen(ctx)
	if frozen != "" {
		p.Say("%s; what it holds is old", frozen)
	}
	return err
}

// Record returns the record of the status.
func (s *Status) Record() term.Record {
	return term.NewRecord("db", s.Path, "db_bytes", s.DBSize, "wal_bytes", s.wal, "schema", admin.SchemaVersion(),
		"version", runner.Version, "paused", admin.AllPaused(s.Holds.Pauses), "paused_tasks", s.PausedTasks,
		"workers", record.List(s.Workers, record.NewWorker),
		"queues", record.List(s.Queues, func(q runner.Queue) term.Record { return record.NewQueue(q, s.Now) }),
		"schedules", record.List(s.Schedules, func(schedule jobs.Schedule) term.Record { return record.NewSchedule(schedule, false) }),
		"problems", record.List(s.Problems, record.NewProblem))
}

// Lines prints the status as lines with tabs, for other programs.
func (s *Status) Lines(p *term.Printer) {
	for _, m := range s.Record().Only("queues", "workers", "schedules", "problems") {
		printRecords(p, strings.TrimSuffix(m.Key, "s"), m.Value.([]term.Record))
	}
}

// printRecords prints each record of a list as a line with tabs that begins with
// a word.
func printRecords(p *term.Printer, word string, list []term.Record) {
	for _, r := range list {
		p.Fields(append([]any{word}, r.Values()...)...)
	}
}

// heldWord says in a word why the tasks of a queue cannot start now. It returns an empty string if they can start.
func (s *Status) heldWord(q runner.Queue) string {
	limits := s.Holds.Limits
	switch {
	case record.Paused(q):
		return "paused"
	case limits.IsClosed(jobs.QueueTarget, q.Queue), limits.IsClosed(jobs.AllTarget, ""):
		return "limit"
	}
	return ""
}
