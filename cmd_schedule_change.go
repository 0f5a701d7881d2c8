package main

import (
	"context"
	"strconv"
	"strings"

	"example.com/runner/internal/cli"
	"example.com/runner/internal/ui"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

func scheduleRunCommand(a *cli.App) *cli.Command {
	var o scheduleNames
	return &cli.Command{
		Name: "run", Usage: "enqueue a task of a schedule now", UsageText: "runner schedule run NAME",
		Description: `EXAMPLES
  runner schedule run backup
  runner wait "$(runner schedule run backup)"

schedule run enqueues a task of the schedule, even if the schedule is paused or
its last task is unfinished. schedule run prints the id of the task on stdout.`,
		Action: a.Action(o.readOne, o.enqueue),
	}
}

func (o *scheduleNames) enqueue(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	t, err := admin.RunSchedule(ctx, r, (*o)[0])
	if err != nil {
		return err
	}
	err = p.Answer(ui.NewTask(t, p.Now()), strconv.FormatInt(t.ID, 10)+"\n", t.ID)
	p.Note("follow: runner logs -f %d", t.ID)
	return err
}

func schedulePauseCommand(a *cli.App) *cli.Command {
	return scheduleChangeCommand(a, "pause", "stop the ticks of schedules",
		`A paused schedule adds no tasks. After a resume, the schedule adds no tasks for
the ticks that came during the pause. Existing tasks continue. A pause survives
restarts.`, &scheduleChange{do: admin.PauseSchedule, word: "paused"})
}

func scheduleResumeCommand(a *cli.App) *cli.Command {
	return scheduleChangeCommand(a, "resume", "start the ticks of paused schedules again",
		"The schedule continues with its next tick.",
		&scheduleChange{do: admin.ResumeSchedule, word: "running"})
}

func scheduleRemoveCommand(a *cli.App) *cli.Command {
	c := scheduleChangeCommand(a, "remove", "remove schedules; their tasks stay",
		"The tasks of the schedule stay, also those that have not started.",
		&scheduleChange{word: "removed", gone: true, do: func(ctx context.Context, r *runner.Runner, name string) error {
			return r.RemoveSchedule(ctx, name)
		}})
	c.Aliases = []string{"rm"}
	return c
}

// scheduleChange is a command that changes schedules by name.
type scheduleChange struct {
	scheduleNames
	do   func(context.Context, *runner.Runner, string) error
	word string // result of the change, for the message; for example "removed"
	gone bool
}

func scheduleChangeCommand(a *cli.App, name, usageText, about string, o *scheduleChange) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usageText, UsageText: "runner schedule " + name + " NAME...",
		Description: strings.ReplaceAll(`EXAMPLES
  runner schedule VERB backup
  runner schedule VERB feed report

`, "VERB", name) + about + `

schedule ` + name + ` prints a line for each schedule: its name and the word
"` + o.word + `". In a pipe, a tab separates them.`,
		Action: a.Action(o.read, o.run),
	}
}

func (o *scheduleChange) run(ctx context.Context, r *runner.Runner, p *ui.Printer) error {
	return cli.ForEach(o.scheduleNames, "schedule", func(name string) error {
		if err := o.do(ctx, r, name); err != nil {
			return err
		}

		changed := ui.RemovedSchedule(name)
		if !o.gone {
			s, err := admin.Schedule(ctx, r, name)
			if err != nil {
				return err
			}
			changed = ui.NewSchedule(s, p.Now(), false)
		}

		return p.Answer(changed, name+ui.Gap+o.word+"\n", name, o.word)
	})
}
