package ui

import (
	"cmp"
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// PrintQueues prints whether the given queues are paused, or all known queues
// for admin.AllQueues.
func PrintQueues(ctx context.Context, r *runner.Runner, p *Printer, queues []string) error {
	known, err := admin.Queues(ctx, r)
	if err != nil {
		return err
	}

	pauses, err := admin.Pauses(ctx, r)
	if err != nil {
		return err
	}

	if queues[0] == admin.AllQueues {
		if p.ForPeople() {
			pending := 0
			for _, q := range known {
				pending += q.Counts[jobs.Pending]
			}
			p.Print("all queues  " + pauseText(pauses[admin.AllQueues], pending, p.Now()))
			return nil
		}

		queues = nil
		for _, q := range known {
			queues = append(queues, q.Name)
		}
	}

	for _, name := range queues {
		q := admin.QueueStatus{Name: name}
		if i := slices.IndexFunc(known, func(q admin.QueueStatus) bool { return q.Name == name }); i >= 0 {
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

func printQueue(p *Printer, q admin.QueueStatus) error {
	line := []any{q.Name, pauseState(q.Pause)}
	if !q.Pause.Until.IsZero() {
		line = append(line, Stamp(q.Pause.Until))
	}
	return p.Answer(NewQueue(q, p.Now(), ""), q.Name+"  "+pauseText(q.Pause, q.Counts[jobs.Pending], p.Now()), line...)
}

func pauseState(pause admin.Pause) string {
	if pause.At.IsZero() {
		return "running"
	}
	return "paused"
}

// pauseText says on a terminal whether a queue is paused, until when, and how
// many of its tasks wait.
func pauseText(pause admin.Pause, pending int, now time.Time) string {
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
	s, err := ReadStatus(ctx, r, p.Now(), nil)
	if err != nil {
		return err
	}

	queues, jobNames := s.names()
	warn := func(kind, name string, known []string, filter jobs.Filter) error {
		if slices.Contains(known, name) {
			return nil
		}

		n, err := db.Of(r).CountUpTo(ctx, filter, 1)
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
		err = cmp.Or(err, warn("queue", name, queues, jobs.Filter{Queues: []string{name}}))
	}

	for _, name := range f.Jobs {
		err = cmp.Or(err, warn("job", name, jobNames, jobs.Filter{Jobs: []string{name}}))
	}

	return err
}

// names returns the queues that have tasks, and the queues and jobs that
// workers and schedules name.
func (s *Status) names() (queues, jobNames []string) {
	jobNames = []string{command.Job}
	for _, q := range s.Queues {
		queues = append(queues, q.Name)
	}

	for _, w := range s.Workers {
		jobNames = append(jobNames, w.Jobs...)
		for _, q := range w.Queues {
			queues = append(queues, q.Name)
		}
	}

	for _, one := range s.Schedules {
		queues, jobNames = append(queues, one.Spec.Queue), append(jobNames, one.Spec.Job)
	}

	return queues, jobNames
}
