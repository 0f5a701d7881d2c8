package await

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/present"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// NoteObstacle says on stderr why the wait for the first of these tasks may
// never end: nobody runs it, it's held or paused, or it needs what the waiting
// command's own task holds. option limits the wait, if the command has such an
// option. here says that this process runs the task itself. A database that
// can't be read is no obstacle: the wait will fail with the same error.
func NoteObstacle(ctx context.Context, r *runner.Runner, p *term.Printer, ids []int64, option string, here bool) {
	if p.JSON {
		return
	}
	if option != "" {
		option = " (limit the wait with " + option + " DURATION)"
	}
	workers, err := r.Workers(ctx)
	if alive, _, _ := admin.LiveWorkers(workers); err == nil && alive == 0 && !here {
		p.Say("no worker is running on this database; waiting until one starts%s", option)
		return
	}
	left, err := r.List(ctx, jobs.Filter{IDs: ids, States: jobs.Unfinished()}, runner.Page{Limit: 1, Oldest: true})
	if err != nil || len(left) == 0 {
		return
	}
	t := left[0]
	why, err := r.Why(ctx, t)
	if err != nil {
		return
	}
	text := present.Wait(why, t, p.Now())
	switch own := ownTask(ctx, r); why.Reason {
	case "held", "paused":
		p.Say("task %d cannot start yet: %s%s", t.ID, text, option)
	case "no_worker", "no_queue", "no_job":
		if !here {
			p.Say("task %d cannot start yet: %s%s", t.ID, text, option)
		}
	case "dependency", "lane":
		if slices.Contains(why.Tasks, own) {
			p.Say("task %d never starts: %s, and this command is part of task %d", t.ID, text, own)
		}
	case "limit", "slots":
		if own != 0 && (why.Reason == "limit" || why.Busy >= why.Slots && !here) {
			p.Say("task %d may never start: %s; task %d, which this command is part of, holds a place while it waits "+
				"(more slots: runner work -c N; without waiting: enqueue --after)", t.ID, text, own)
		}
	}
}

// ownTask returns the id of the running task that this process is part of, or 0.
func ownTask(ctx context.Context, r *runner.Runner) int64 {
	id, err := strconv.ParseInt(os.Getenv("RUNNER_TASK_ID"), 10, 64)
	if err != nil {
		return 0
	}
	t, err := r.Get(ctx, id)
	// The generation tells whether the task is of this database.
	if err != nil || t.State != jobs.Running || fmt.Sprint(t.GenerationID) != os.Getenv("RUNNER_TASK_GENERATION") {
		return 0
	}
	return id
}
