package await

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/present"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Obstacles says on stderr why the first of the awaited tasks doesn't run, once
// for each reason. nil says nothing.
type Obstacles struct {
	r      *runner.Runner
	p      *term.Printer
	ids    []int64
	option string // how to limit the wait, in parentheses; empty if the command has no such option
	here   bool   // whether this process runs the task if nobody else does

	said map[string]bool
	next time.Time // when to look again
}

// lookEvery is the pause between two looks at a waiting task. At the first look
// Obstacles says only what may keep the task for longer than that.
const lookEvery = 10 * time.Second

// NoteObstacles says at once why the wait for the first of these tasks may
// never end or take long. Call Look during the wait.
func NoteObstacles(ctx context.Context, r *runner.Runner, p *term.Printer, ids []int64, option string, here bool) *Obstacles {
	if option != "" {
		option = " (limit the wait with " + option + " DURATION)"
	}
	o := &Obstacles{r: r, p: p, ids: ids, option: option, here: here, said: map[string]bool{}}
	o.look(ctx, false)
	return o
}

// Look says what keeps the first task from running if it's time to look again.
func (o *Obstacles) Look(ctx context.Context) {
	if o.due() {
		o.look(ctx, true)
	}
}

func (o *Obstacles) due() bool { return o != nil && !time.Now().Before(o.next) }

// look ignores a database that it can't read: the wait fails with the same
// error.
func (o *Obstacles) look(ctx context.Context, again bool) {
	o.next = time.Now().Add(lookEvery)
	left, err := o.r.List(ctx, jobs.Filter{IDs: o.ids, States: jobs.Unfinished()}, runner.Page{Limit: 1, Oldest: true})
	if err != nil || len(left) == 0 {
		return
	}
	t, own := left[0], ownTask(ctx, o.r)
	last, why, text, err := o.cause(ctx, t, own)
	if err != nil || o.said[why.Reason] {
		return
	}
	switch {
	case own != 0 && t.ID == own:
		o.p.Tell("task %d never ends: this command is part of it", own)
	case own != 0 && why.Reason != "slots" && slices.Contains(why.Tasks, own):
		o.p.Tell("task %d never starts: %s, and this command is part of task %d", t.ID, text, own)
	case own != 0 && holdsPlace(why):
		o.p.Tell("task %d may never start: %s; task %d, which this command is part of, holds a place while it waits "+
			"(more slots: runner work -c N; without waiting: enqueue --after)", t.ID, text, own)
	case goesOn(why, o.here && last.ID == t.ID) || !again && mayBeShort(last, why):
		return
	case t.State == jobs.Running:
		o.p.Tell("task %d cannot end yet: %s%s", t.ID, text, o.option)
	default:
		o.p.Tell("task %d cannot start yet: %s%s", t.ID, text, o.option)
	}
	o.said[why.Reason] = true
}

// cause follows what t waits for to the last task, and returns that task, its
// reason and the text for all of them. It doesn't look behind the command's own
// task.
func (o *Obstacles) cause(ctx context.Context, t jobs.Task, own int64) (last jobs.Task, why runner.Wait, text string, err error) {
	for range 5 {
		if why, err = o.r.Why(ctx, t); err != nil {
			break
		}
		text += present.Wait(why, t, o.p.Now())
		waits := why.Reason == "dependency" || why.Reason == "lane"
		if !waits || len(why.Tasks) == 0 || slices.Contains(why.Tasks, own) {
			break
		}
		if t, err = o.r.Get(ctx, why.Tasks[0]); err != nil {
			break
		}
		text += fmt.Sprintf("; task %d: ", t.ID)
	}
	return t, why, text, err
}

// goesOn reports whether nothing keeps the task from its end, or from its start
// in this process if it may run here.
func goesOn(why runner.Wait, here bool) bool {
	switch why.Reason {
	case "", "running":
		return true
	case "slots":
		return why.Busy < why.Slots
	case "no_worker", "no_queue", "no_job":
		return here
	}
	return false
}

// mayBeShort reports whether nothing tells yet that the wait will be long.
func mayBeShort(t jobs.Task, why runner.Wait) bool {
	switch why.Reason {
	case "worker_gone", "lane_free", "slots":
		return true
	case "scheduled", "backoff":
		return time.Until(t.RunAt) < lookEvery
	case "limit":
		return time.Until(why.Limit.NextAt) < lookEvery
	}
	return false
}

// holdsPlace reports whether a running task keeps the place that another one
// waits for.
func holdsPlace(why runner.Wait) bool {
	if why.Reason == "limit" {
		return why.Limit.Running > 0 && why.Limit.InUse >= why.Limit.Running
	}
	return why.Reason == "slots" && why.Busy >= why.Slots
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

// NoteService says that no worker runs on this database although this machine's
// service has another one, in which the user may have meant to run the command.
func NoteService(ctx context.Context, r *runner.Runner, p *term.Printer, service, command string) error {
	if service == "" {
		return nil
	}
	list, err := r.Workers(ctx)
	if alive, _, _ := admin.LiveWorkers(list); err == nil && alive == 0 {
		p.Tell("no worker runs on %s; the service of this machine uses %s: sudo -u runner runner %s …", r.Path(), service, command)
	}
	return err
}
