package output

import (
	"context"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// All waits until every task has finished or was deleted. It returns the number
// of tasks that did not complete, and prints a line to stderr for each of them.
// It calls show for every task, in the order in which the tasks end. A terminal
// shows the progress of a long wait, but not with --json.
func All(ctx context.Context, r *runner.Runner, p *ui.Printer, ids []int64, obstacles *Obstacles,
	show func(jobs.Task) error) (failed int, err error) {
	bar := ui.NewBar(p, "waiting", "")
	bar.Total = len(ids)
	defer bar.Clear()
	done := 0
	err = poll(ctx, r, ids, func(t jobs.Task) (bool, error) {
		done++
		bad := t.State != jobs.Completed
		if bad {
			failed++
		}
		if p.Stdout.TTY || bad {
			bar.Clear()
		}
		if err := show(t); err != nil {
			return false, err
		}
		if bad {
			p.Tell("runner: %s", FailedText(t))
		}
		return true, p.Flush()
	}, func() {
		if obstacles.due() {
			bar.Clear()
			obstacles.Look(ctx)
		}
		bar.Show(done, failed)
	})
	if err != nil {
		bar.Clear()
		return failed, Stopped(p, err, ids, len(ids)-done)
	}
	return failed, nil
}
