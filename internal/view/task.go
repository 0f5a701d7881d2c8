// Package view draws tasks, schedules and the status of the database for a terminal.
package view

import (
	"context"
	"math"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/lines"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Task contains everything that the command show prints about a task.
type Task struct {
	Task     jobs.Task
	Attempts []jobs.Attempt
	on, by   []runner.Dependency // tasks that the task waits for, and tasks that wait for it
	Steps    []jobs.Step
	Changes  []admin.TaskChange // latest changes that users made to the task
	Why      string
	Outlived []admin.OrphanProcess // processes that live although they should be dead
	Tail     []string              // last lines of output, if the last ended attempt failed
	Input    []byte                // standard input of the task; nil if Reveal is false
	Reveal   bool
	Now      time.Time
}

func ReadTask(ctx context.Context, r *runner.Runner, id int64, now time.Time, reveal bool) (Task, error) {
	t, err := r.Get(ctx, id)
	if err != nil {
		return Task{}, err
	}
	s := Task{Task: t, Reveal: reveal, Now: now}
	if s.on, s.by, err = r.Dependencies(ctx, id, 0); err != nil {
		return s, err
	}
	if s.Attempts, err = r.Attempts(ctx, t); err != nil {
		return s, err
	}
	if s.Changes, err = admin.Store(r).TaskChanges(ctx, id); err != nil {
		return s, err
	}
	if t.Job != jobs.CommandJob {
		if s.Steps, err = r.Steps(ctx, id); err != nil {
			return s, err
		}
	} else if s.Outlived, err = admin.OrphansOf(ctx, r, t); err != nil {
		return s, err
	}
	if last := s.lastEnded(); last != nil && last.State == jobs.Failed && t.State != jobs.Completed {
		chunks, err := admin.OutputBefore(ctx, r, *last, math.MaxInt64, 64)
		if err != nil {
			return s, err
		}
		s.Tail = lines.Shown(chunks, tailLength)
	}
	if reveal {
		if s.Input, err = ReadInput(ctx, r, t); err != nil {
			return s, err
		}
	}
	wait, err := r.Why(ctx, t)
	s.Why = present.Wait(wait, t, s.Now)
	return s, err
}

// lastEnded returns the last attempt that has ended, or nil if there is none.
func (s *Task) lastEnded() *jobs.Attempt {
	for i := len(s.Attempts) - 1; i >= 0; i-- {
		if s.Attempts[i].State != jobs.Running {
			return &s.Attempts[i]
		}
	}
	return nil
}

// Record returns the complete record of the task.
func (s *Task) Record() term.Record {
	full := record.NewTask(s.Task, s.Now).With("why", term.Known(s.Why),
		"dependencies", record.List(s.on, record.NewDependency),
		"dependents", record.List(s.by, record.NewDependency),
		"steps", record.List(s.Steps, record.NewStep),
		"changes", record.List(s.Changes, record.NewTaskChange),
		"history", record.List(s.Attempts, record.NewAttempt),
		"outlived", record.List(s.Outlived, record.NewProcess))
	if s.Reveal {
		return record.Reveal(full, s.Task.Env, s.Input)
	}
	return full
}

// Lines prints the task as lines with tabs, for other programs.
func (s *Task) Lines(p *term.Printer) {
	words := map[string]string{"steps": "step", "changes": "change", "history": "attempt"}
	full := s.Record()
	for _, m := range full {
		if words[m.Key] == "" {
			p.Fields(m.Key, m.Value)
		}
	}
	for _, m := range full.Only("steps", "changes", "history") {
		printRecords(p, words[m.Key], m.Value.([]term.Record))
	}
}

// ReadInput returns the standard input for the command of a task, or nil if there is none.
func ReadInput(ctx context.Context, r *runner.Runner, t jobs.Task) ([]byte, error) {
	if t.InputBytes <= 0 {
		return nil, nil
	}
	return admin.Store(r).Input(ctx, t.ID)
}

// tailLength is how many lines of output the command show prints about a failed attempt.
const tailLength = 5
