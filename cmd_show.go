package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/failure"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func showCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "show", Category: "See", Usage: "one task: attempts, timing, why it waits",
		UsageText: "runner show ID... [--reveal] [--format TEMPLATE]",
		Flags:     []cli.Flag{cli.RevealOption(), cli.FormatOption()},
		Description: `What a task runs, under which rules, and each of its attempts. For one that
has not finished, why it waits; after a failed attempt, the last five lines of
its output (all of it: runner logs ID). Processes that live though their attempt
has ended are named.

The values of env are shown as ••• (in JSON: null) unless --reveal is given.
In a pipe: a line "key, tab, value" for each key of the JSON record, then a
line "attempt" for each attempt; an empty line between tasks.

EXIT STATUS
  0   done
  1   no database, or it cannot be read
  2   wrong usage
  3   one of the tasks does not exist; the others are shown
  75  the database was busy for too long`,
		Action: cli.Action(a, false, readShowOptions, runShow),
	}
}

type showOptions struct {
	ids    []int64
	reveal bool
	format *record.Formatter // nil: none
}

func readShowOptions(c *cli.Context, a *cli.App) (showOptions, error) {
	ids, err := cli.ReadIDs(c.Args().Slice())
	switch {
	case err != nil:
		return showOptions{}, err
	case len(ids) == 0:
		return showOptions{}, failure.Usage("show needs a task id").Hint("runner show 1042      runner list, to find it")
	}
	o := showOptions{ids: ids, reveal: cli.Get[bool](c, "reveal")}
	o.format, err = cli.FormatterOf(c, a.Printer)
	return o, err
}

func runShow(ctx context.Context, r *runner.Runner, p *term.Printer, o showOptions) error {
	between := ""
	for _, id := range o.ids {
		s, err := readSheet(ctx, r, id, p.Now(), o.reveal)
		switch {
		case errors.Is(err, jobs.ErrNotFound):
			continue
		case err != nil:
			return err
		case p.JSON:
			err = p.Record(s.record())
		case o.format != nil:
			err = o.format.Record(s.record())
		case p.Stdout.TTY:
			p.Print(between)
			s.draw(p)
		default:
			p.Print(between)
			err = s.lines(p)
		}
		if err != nil {
			return err
		}
		between = "\n"
	}
	return noSuchTasks(ctx, r, o.ids)
}

// sheet is all there is to know about a task.
type sheet struct {
	task     jobs.Task
	attempts []jobs.Attempt
	on, by   []runner.Dependency // what it waits or has waited for, and what for it
	steps    []jobs.Step
	why      string
	outlived []admin.OrphanProcess // processes that should be dead
	tail     []string              // the last lines of the last attempt that ended, if that failed
	input    []byte                // with reveal only
	reveal   bool
	now      time.Time
}

// tailLines is how much of a failed attempt's output show shows.
const tailLines = 5

func readSheet(ctx context.Context, r *runner.Runner, id int64, now time.Time, reveal bool) (sheet, error) {
	t, err := r.Get(ctx, id)
	if err != nil {
		return sheet{}, err
	}
	s := sheet{task: t, reveal: reveal, now: now}
	if s.on, s.by, err = r.Dependencies(ctx, id, 0); err != nil {
		return s, err
	}
	if s.attempts, err = r.Attempts(ctx, t); err != nil {
		return s, err
	}
	if t.Job != jobs.CommandJob {
		if s.steps, err = r.Steps(ctx, id); err != nil {
			return s, err
		}
	} else if s.outlived, err = admin.OrphansOf(ctx, r, t); err != nil {
		return s, err
	}
	if last := s.lastEnded(); last != nil && last.State == jobs.Failed && t.State != jobs.Completed {
		chunks, err := admin.LastOutput(ctx, r, *last, 64)
		if err != nil {
			return s, err
		}
		s.tail = closingLines(chunks, tailLines)
	}
	if reveal {
		if s.input, err = readInput(ctx, r, t); err != nil {
			return s, err
		}
	}
	wait, err := r.Why(ctx, t)
	s.why = present.Wait(wait, t, s.now)
	return s, err
}

// lastEnded is the last attempt that has ended; nil: there is none.
func (s *sheet) lastEnded() *jobs.Attempt {
	for i := len(s.attempts) - 1; i >= 0; i-- {
		if s.attempts[i].State != jobs.Running {
			return &s.attempts[i]
		}
	}
	return nil
}

// record is the record of the task in full.
func (s *sheet) record() record.Record {
	full := record.NewTask(s.task, s.now).
		With("why", record.OrNull(s.why)).
		With("dependencies", record.List(s.on, record.NewDependency)).
		With("dependents", record.List(s.by, record.NewDependency)).
		With("steps", record.List(s.steps, record.NewStep)).
		With("history", record.List(s.attempts, record.NewAttempt)).
		With("outlived", record.List(s.outlived, func(p admin.OrphanProcess) record.Process {
			return record.Process{PID: p.PID, Name: p.Name, State: p.State, UID: p.UID}
		}))
	if s.reveal {
		return full.Reveal(s.task.Env, s.input)
	}
	return full
}

// lines writes the sheet for other programs.
func (s *sheet) lines(p *term.Printer) error {
	list, err := record.Pairs(s.record())
	if err != nil {
		return err
	}
	for _, pair := range list {
		if pair.Key != "history" && pair.Key != "steps" {
			p.Fields(pair.Key, pair.Value)
		}
	}
	return cmp.Or(record.Lines(p, "step", record.List(s.steps, record.NewStep)),
		record.Lines(p, "attempt", record.List(s.attempts, record.NewAttempt)))
}
