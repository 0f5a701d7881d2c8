package ui

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/orphans"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Task is everything that runner show prints about a task.
type Task struct {
	Task     jobs.Task
	Attempts []admin.Attempt
	on, by   []admin.Dependency // tasks that the task waits for, and tasks that wait for it
	Steps    []admin.Step
	Changes  []db.TaskChange // latest changes that users made to the task
	Why      string
	Outlived []orphans.Process // processes that live although they should be dead
	Tail     []string          // last lines of output, if the last ended attempt failed
	Input    []byte            // standard input of the task; nil if Reveal is false
	Reveal   bool
	Now      time.Time
}

func ReadTask(ctx context.Context, r *runner.Runner, id int64, now time.Time, reveal bool) (Task, error) {
	t, err := r.Get(ctx, id)
	if err != nil {
		return Task{}, err
	}

	s := Task{Task: t, Reveal: reveal, Now: now}
	if err := s.ReadHistory(ctx, r); err != nil {
		return s, err
	}

	if s.on, s.by, err = admin.Dependencies(ctx, r, id, 0); err != nil {
		return s, err
	}

	if t.Job != command.Job {
		if s.Steps, err = admin.Steps(ctx, r, id); err != nil {
			return s, err
		}
	} else if s.Outlived, err = orphans.Of(ctx, r, t); err != nil {
		return s, err
	}

	if last := s.lastEnded(); last != nil && last.State == jobs.Failed && t.State != jobs.Completed {
		chunks, err := OutputBefore(ctx, r, *last, math.MaxInt64, 64)
		if err != nil {
			return s, err
		}
		s.Tail = shownLines(chunks, tailLength)
	}

	if reveal {
		s.Input, err = ReadInput(ctx, r, t)
	}

	return s, err
}

// ReadHistory reads the attempts of the task, the changes that users made, and
// why it waits: what show and the page of the task have in common.
func (s *Task) ReadHistory(ctx context.Context, r *runner.Runner) (err error) {
	if s.Attempts, err = admin.Attempts(ctx, r, s.Task); err != nil {
		return err
	}

	if s.Changes, err = db.Of(r).TaskChanges(ctx, s.Task.ID); err != nil {
		return err
	}

	wait, err := admin.Why(ctx, r, s.Task)
	s.Why = Wait(wait, s.Task, s.Now)
	return err
}

// lastEnded returns the last attempt that has ended, or nil.
func (s *Task) lastEnded() *admin.Attempt {
	for i := len(s.Attempts) - 1; i >= 0; i-- {
		if s.Attempts[i].State != jobs.Running {
			return &s.Attempts[i]
		}
	}
	return nil
}

// Record returns the complete record of the task.
func (s *Task) Record() Record {
	full := NewTask(s.Task, s.Now).With("why", Known(s.Why),
		"dependencies", Records(s.on, NewDependency),
		"dependents", Records(s.by, NewDependency),
		"steps", Records(s.Steps, s.stepRow),
		"changes", s.changes(),
		"history", Records(s.Attempts, NewAttempt),
		"outlived", Records(s.Outlived, NewProcess))
	if s.Reveal {
		return Reveal(full, s.Task.Env, s.Input)
	}
	return full
}

func (s *Task) stepRow(step admin.Step) Record { return NewStep(step, s.Now) }

func (s *Task) changes() []Record {
	return Records(s.Changes, func(c db.TaskChange) Record { return NewTaskChange(c, s.Now) })
}

// Lines prints the task as lines with tabs, for other programs.
func (s *Task) Lines(p *Printer) {
	words := map[string]string{"steps": "step", "changes": "change", "history": "attempt"}
	full := s.Record()
	for _, m := range full {
		if words[m.Key] == "" {
			p.Fields(m.Key, m.Value)
		}
	}

	for _, m := range full.Pick("steps", "changes", "history") {
		printRecords(p, words[m.Key], m.Value.([]Record))
	}
}

// ReadInput returns the standard input for a task's command, or nil.
func ReadInput(ctx context.Context, r *runner.Runner, t jobs.Task) ([]byte, error) {
	if t.InputBytes <= 0 {
		return nil, nil
	}
	return db.Of(r).Input(ctx, t.ID)
}

// tailLength is how many lines of a failed attempt's output runner show prints.
const tailLength = 5

// OutputBefore returns at most limit pieces of an attempt's output that come
// just before piece seq, in order (math.MaxInt64: the last pieces). The attempt
// may still be running.
func OutputBefore(
	ctx context.Context, r *runner.Runner, attempt admin.Attempt, seq int64, limit int,
) ([]admin.Chunk, error) {
	claim := db.ClaimID{ID: attempt.TaskID, GenerationID: attempt.GenerationID}
	return db.Of(r).OutputBefore(ctx, claim, seq, limit)
}

// shownLines returns the last n lines in a list of pieces as a terminal would
// show them: of a line that was overwritten, the final text. Blank lines at the
// end are left out, and control characters stay.
func shownLines(chunks []db.Chunk, n int) (list []string) {
	var text []byte
	for i, c := range chunks {
		if i > 0 && c.Stream != chunks[i-1].Stream && len(text) > 0 && text[len(text)-1] != '\n' {
			text = append(text, '\n') // end the line here, because the next piece belongs to another stream
		}
		text = append(text, c.Data...)
	}

	for text = bytes.TrimRight(text, "\r\n\t "); len(text) > 0 && len(list) < n; {
		at := bytes.LastIndexByte(text, '\n')
		line := bytes.TrimRight(text[at+1:], "\r")
		text = text[:max(at, 0)]
		line = line[bytes.LastIndexByte(line, '\r')+1:]
		list = append(list, strings.ReplaceAll(string(line), "\t", "    "))
	}

	slices.Reverse(list)
	return list
}
