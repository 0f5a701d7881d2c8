package ui

import (
	"context"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// PrintQueues prints whether the given queues are paused, or all known queues
// for runner.AllQueues.
func PrintQueues(ctx context.Context, r *runner.Runner, p *Printer, queues []string) error {
	known, err := r.Queues(ctx)
	if err != nil {
		return err
	}

	pauses, err := r.Pauses(ctx)
	if err != nil {
		return err
	}

	if queues[0] == runner.AllQueues {
		if p.ForPeople() {
			pending := 0
			for _, q := range known {
				pending += q.Counts[jobs.Pending]
			}
			p.Print("all queues  " + pauseText(pauses[runner.AllQueues], pending, p.Now()))
			return nil
		}
		queues = nil
		for _, q := range known {
			queues = append(queues, q.Queue)
		}
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

func printQueue(p *Printer, q runner.Queue) error {
	line := []any{q.Queue, pauseState(q.Pause)}
	if !q.Pause.Until.IsZero() {
		line = append(line, Stamp(q.Pause.Until))
	}
	return p.Answer(NewQueue(q, p.Now(), ""), q.Queue+"  "+pauseText(q.Pause, q.Counts[jobs.Pending], p.Now()), line...)
}

func pauseState(pause runner.Pause) string {
	if pause.At.IsZero() {
		return "running"
	}
	return "paused"
}

// pauseText says on a terminal whether a queue is paused, until when, and how
// many of its tasks wait.
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

// WarnUnknown warns of queues and jobs in a filter that are probably mistyped:
// they have no tasks, and no schedule or worker names them. A script could
// otherwise take "no tasks" for "all done".
func WarnUnknown(ctx context.Context, r *runner.Runner, p *Printer, f jobs.Filter) error {
	queues, jobNames, err := knownNames(ctx, r)
	if err != nil {
		return err
	}

	warn := func(kind, name string, known []string, filter jobs.Filter) error {
		if slices.Contains(known, name) {
			return nil
		}
		n, err := admin.Store(r).CountUpTo(ctx, filter, 1)
		if err != nil || n > 0 {
			return err
		}
		similar := ""
		if near := humanize.Nearest(name, known); near != "" {
			similar = "; did you mean " + near + "?"
		}
		p.Say("%s %s has no tasks, and no worker or schedule names it%s", kind, name, similar)
		return nil
	}

	for _, name := range f.Queues {
		if err := warn("queue", name, queues, jobs.Filter{Queues: []string{name}}); err != nil {
			return err
		}
	}

	for _, name := range f.Jobs {
		if err := warn("job", name, jobNames, jobs.Filter{Jobs: []string{name}}); err != nil {
			return err
		}
	}
	return nil
}

// knownNames returns the queues that have tasks, and the queues and jobs that
// workers and schedules name.
func knownNames(ctx context.Context, r *runner.Runner) (queues, jobNames []string, err error) {
	counted, err := r.Queues(ctx)
	if err != nil {
		return nil, nil, err
	}

	workers, err := r.Workers(ctx)
	if err != nil {
		return nil, nil, err
	}

	schedules, err := r.Schedules(ctx)
	if err != nil {
		return nil, nil, err
	}

	for _, q := range counted {
		queues = append(queues, q.Queue)
	}

	jobNames = append(jobNames, jobs.CommandJob)
	for _, w := range workers {
		jobNames = append(jobNames, w.Jobs...)
		for _, q := range w.Queues {
			queues = append(queues, q.Queue)
		}
	}

	for _, s := range schedules {
		queues, jobNames = append(queues, s.Spec.Queue), append(jobNames, s.Spec.Job)
	}
	return queues, jobNames, nil
}
