package view

import (
	"context"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/search"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// PrintQueues prints the given queues, and for each whether it is paused. If queues contains runner.AllQueues, it prints all known queues.
func PrintQueues(ctx context.Context, r *runner.Runner, p *term.Printer, queues []string) error {
	known, err := r.Queues(ctx)
	if err != nil {
		return err
	}
	pauses, err := r.Pauses(ctx)
	if err != nil {
		return err
	}
	if queues[0] == runner.AllQueues {
		return printAllQueues(p, known, pauses)
	}
	for _, name := range queues {
		q := runner.Queue{Queue: name}
		if i := slices.IndexFunc(known, func(q runner.Queue) bool { return q.Queue == name }); i >= 0 {
			q = known[i]
		} else {
			q.Pause, _ = pauses.Of(name)
		}
		if err := printQueue(p, q); err != nil {
			return err
		}
	}
	return nil
}

func printAllQueues(p *term.Printer, known []runner.Queue, pauses runner.Pauses) error {
	if p.ForPeople() {
		pending := 0
		for _, q := range known {
			pending += q.Counts[jobs.Pending]
		}
		p.Print("all queues  " + pauseText(pauses[runner.AllQueues], pending, p.Now()))
		return nil
	}
	for _, q := range known {
		if err := printQueue(p, q); err != nil {
			return err
		}
	}
	return nil
}

func printQueue(p *term.Printer, q runner.Queue) error {
	line := []any{q.Queue, pauseState(q.Pause)}
	if !q.Pause.Until.IsZero() {
		line = append(line, term.Stamp(q.Pause.Until))
	}
	return p.Answer(record.NewQueue(q, p.Now()), q.Queue+"  "+pauseText(q.Pause, q.Counts[jobs.Pending], p.Now()), line...)
}

func pauseState(pause runner.Pause) string {
	if pause.At.IsZero() {
		return "running"
	}
	return "paused"
}

// pauseText says whether a queue is paused, until when, and how many of its tasks wait, for a terminal.
func pauseText(pause runner.Pause, pending int, now time.Time) string {
	text := pauseState(pause)
	if !pause.Until.IsZero() {
		text += " until " + humanize.Clock(pause.Until, now)
	}
	if pending > 0 {
		text += "  (" + humanize.TasksWait(pending) + ")"
	}
	return text + "\n"
}

// WarnUnknown warns of queues and jobs in a filter that are probably mistyped: they have no tasks, and no schedule or worker names them.
// Without the warning, a script could conclude from "no tasks" that all tasks are done.
func WarnUnknown(ctx context.Context, r *runner.Runner, p *term.Printer, f jobs.Filter) error {
	queues, err := r.Queues(ctx)
	if err != nil {
		return err
	}
	known, err := present.ReadNames(ctx, r, queues)
	if err != nil {
		return err
	}
	warn := func(kind, name string, filter jobs.Filter) error {
		if slices.Contains(known[kind], name) {
			return nil
		}
		n, err := admin.Store(r).CountUpTo(ctx, filter, 1)
		if err != nil || n > 0 {
			return err
		}
		similar := ""
		if near := humanize.Nearest(name, known[kind]); near != "" {
			similar = "; did you mean " + near + "?"
		}
		p.Say("%s %s has no tasks, and no worker or schedule names it%s", kind, name, similar)
		return nil
	}
	for _, name := range f.Queues {
		if err := warn(search.KeyQueue, name, jobs.Filter{Queues: []string{name}}); err != nil {
			return err
		}
	}
	for _, name := range f.Jobs {
		if err := warn(search.KeyJob, name, jobs.Filter{Jobs: []string{name}}); err != nil {
			return err
		}
	}
	return nil
}
