package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Status is the state of a database and its workers at a moment.
type Status struct {
	Path        string
	DBSize, wal int64
	Now         time.Time
	Queues      []admin.QueueStatus
	Holds       Holds
	Workers     []admin.Worker // workers with a recent heartbeat
	Schedules   []jobs.Schedule
	Problems    []Problem
	Alive       int // number of workers that are not lost
	Busy, Slots int // busy slots, and all slots, of the workers that are not lost
	PausedTasks int // number of paused tasks; maxPaused if there are more
}

// maxPaused is the highest number of paused tasks that the status counts.
const maxPaused = 100_000

// ReadStatus reads the status of the given queues, or of all if names is nil.
func ReadStatus(ctx context.Context, r *runner.Runner, now time.Time, names []string) (Status, error) {
	queues, err := admin.Queues(ctx, r)
	if err != nil {
		return Status{}, err
	}
	if names != nil {
		queues = slices.DeleteFunc(queues, func(q admin.QueueStatus) bool { return !slices.Contains(names, q.Name) })
	}
	s, err := StatusOf(ctx, r, now, queues, names)
	s.DBSize, s.wal = db.Of(r).Size()
	return s, err
}

// StatusOf is like ReadStatus, but the caller has already read the queues. The
// status has no sizes.
func StatusOf(ctx context.Context, r *runner.Runner, now time.Time, queues []admin.QueueStatus,
	names []string) (s Status, err error) {
	s = Status{Path: admin.Path(r), Now: now, Queues: queues}
	if s.Holds, err = ReadHolds(ctx, r); err != nil {
		return s, err
	}

	if s.Workers, err = admin.Workers(ctx, r); err != nil {
		return s, err
	}

	if s.Schedules, err = admin.Schedules(ctx, r); err != nil {
		return s, err
	}

	paused := jobs.Filter{Queues: names, Paused: true}
	if s.PausedTasks, err = db.Of(r).CountUpTo(ctx, paused, maxPaused); err != nil {
		return s, err
	}

	s.Alive, s.Busy, s.Slots = LiveWorkers(s.Workers)

	s.FindProblems()
	if err = s.readProblems(ctx, r); err != nil {
		return s, err
	}

	frozen, err := db.Of(r).Frozen(ctx)
	if frozen != "" { // everything else is about a copy that nobody uses
		s.Problems = append([]Problem{{Code: "moved", Message: frozen, Try: "--db, with the other database"}}, s.Problems...)
	}

	return s, err
}

// ServedQueues returns a worker's queues as text: all, or default,media=2 with
// the given separator.
func ServedQueues(w admin.Worker, separator string) string {
	names := make([]string, len(w.Queues))
	for i, q := range w.Queues {
		if names[i] = q.Name; q.Max > 0 {
			names[i] += fmt.Sprintf("=%d", q.Max)
		}
	}
	return cmp.Or(strings.Join(names, separator), "all")
}

// WarnFrozen says on stderr that the database was moved, so what it holds is
// old.
func WarnFrozen(ctx context.Context, r *runner.Runner, p *Printer) error {
	frozen, err := db.Of(r).Frozen(ctx)
	if frozen != "" {
		p.Say("%s; what it holds is old", frozen)
	}
	return err
}

// Record returns the record of the status.
func (s *Status) Record() Record {
	return NewRecord("db", s.Path, "db_bytes", s.DBSize, "wal_bytes", s.wal, "schema", db.SchemaVersion(),
		"version", db.RunnerVersion, "paused", AllPaused(s.Holds.Pauses), "paused_tasks", s.PausedTasks,
		"workers", s.workers(),
		"queues", s.queues(),
		"schedules", Records(s.Schedules, func(c jobs.Schedule) Record { return NewSchedule(c, s.Now, false) }),
		"problems", Records(s.Problems, NewProblem))
}

func (s *Status) workers() []Record {
	return Records(s.Workers, func(w admin.Worker) Record { return NewWorker(w, s.Now) })
}

func (s *Status) queues() []Record {
	return Records(s.Queues, func(q admin.QueueStatus) Record { return NewQueue(q, s.Now, s.heldWord(q)) })
}

// Lines prints the status as lines with tabs, for other programs.
func (s *Status) Lines(p *Printer) {
	for _, m := range s.Record().Pick("queues", "workers", "schedules", "problems") {
		printRecords(p, strings.TrimSuffix(m.Key, "s"), m.Value.([]Record))
	}
}

// printRecords prints each record of a list as a line with tabs that begins
// with a word.
func printRecords(p *Printer, word string, list []Record) {
	for _, r := range list {
		p.Fields(append([]any{word}, r.Values()...)...)
	}
}

// heldWord says in a word why a queue's tasks can't start now, or is empty.
func (s *Status) heldWord(q admin.QueueStatus) string {
	limits := s.Holds.Limits
	switch {
	case Paused(q):
		return "paused"
	case limits.IsClosed(admin.QueueTarget, q.Name), limits.IsClosed(admin.AllTarget, ""):
		return "limit"
	}

	return ""
}
