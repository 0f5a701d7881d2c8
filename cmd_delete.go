package main

import (
	"context"
	"slices"

	"example.com/runner/internal/bulk"
	"example.com/runner/internal/cli"
	"example.com/runner/internal/record"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func deleteCommand(a *cli.App) *cli.Command {
	return &cli.Command{
		Name: "delete", Aliases: []string{"rm"}, Category: "Steer", Usage: "forget finished tasks",
		UsageText: "runner delete ID...|SELECTOR",
		Description: `Forgets finished tasks, with their attempts and output. There is no way back.
Tasks that wait or run are left alone: cancel them first. A filter selects
finished tasks only.

Prints a line per task: id and "deleted". A filter that selects several tasks
asks on a terminal, and elsewhere needs --yes.

EXAMPLES
  runner delete 1034
  runner delete -s completed --older-than 1w --yes
  runner delete --all --dry-run

EXIT STATUS
  0   done; also when a filter selects none
  1   a task has not finished; the others are deleted
  2   usage; nothing was deleted
  3   some of the ids do not exist; the others are deleted
  75  the database is busy, or the disk is full`,
		Flags:  bulk.Options(a),
		Action: cli.Action(a, false, readDeleteOptions, runDelete),
	}
}

type deleteOptions struct{ bulk.Action }

func readDeleteOptions(c *cli.Context, a *cli.App) (deleteOptions, error) {
	s, err := bulk.Read(c, a.Now(), "delete", "deleted")
	s.OnlyEligible()
	return deleteOptions{s}, err
}

func runDelete(ctx context.Context, r *runner.Runner, p *term.Printer, o deleteOptions) error {
	ids, err := o.Tasks(ctx, r, p)
	if err != nil {
		return err
	}
	if o.DryRun {
		return o.Preview(ctx, r, p, ids, func(t jobs.Task) string {
			if !t.State.Finished() {
				return "it is " + string(t.State)
			}
			return ""
		})
	}
	out := bulk.NewOutcomes(p, &o.Action, ids)
	for part := range slices.Chunk(ids, bulk.BatchSize) {
		moved, err := r.Delete(ctx, part)
		if err != nil {
			return err
		}
		for _, m := range moved {
			switch {
			case m.Done:
				out.Line(m.ID, "deleted", "", record.Deleted{ID: m.ID, Deleted: true})
			case m.State == "":
				out.Missing = append(out.Missing, m.ID)
			default:
				out.Refuse(m.ID, string(m.State), "it is "+string(m.State), record.Deleted{ID: m.ID, Deleted: false})
			}
		}
	}
	return out.End()
}
