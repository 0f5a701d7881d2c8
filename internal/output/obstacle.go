package output

import (
	"context"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Obstacles says on stderr why the first of the awaited tasks doesn't run, once
// for each reason. nil says nothing.
type Obstacles struct {
	r      *runner.Runner
	p      *ui.Printer
	ids    []int64
	option string // how to limit the wait, in parentheses; empty if the command has no such option
	here   bool   // whether this process runs the task if nobody else does

	said map[admin.WaitReason]bool
	next time.Time // when to look again
}

// lookEvery is the pause between two looks at a waiting task. At the first look
// Obstacles says only what may keep the task for longer than that.
const lookEvery = 10 * time.Second

// NoteObstacles says at once why the wait for the first of these tasks may
// never end or take long. Call Look during the wait.
func NoteObstacles(ctx context.Context, r *runner.Runner, p *ui.Printer, ids []int64, option string, here bool) *Obstacles {
	if option != "" {
		option = " (limit the wait with " + option + " DURATION)"
	}
	o := &Obstacles{r: r, p: p, ids: ids, option: option, here: here, said: map[admin.WaitReason]bool{}}
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
	left, err := o.r.List(ctx, jobs.Filter{IDs: o.ids, States: taskspec.Unfinished(), Limit: 1, OldestFirst: true})
	if err != nil || len(left) == 0 {
		return
	}

	why, err := admin.Why(ctx, o.r, left[0])
	if err != nil || o.said[why.Reason] || !o.keeps(left[0], why, again) {
		return
	}

	end := "start"
	if left[0].State == jobs.Running {
		end = "end"
	}

	o.p.Tell("task %d cannot %s yet: %s%s", left[0].ID, end, ui.Wait(why, left[0], o.p.Now()), o.option)
	o.said[why.Reason] = true
}

// keeps reports whether a reason keeps the task. At the first look many reasons
// may be gone in a moment.
func (o *Obstacles) keeps(t jobs.Task, why admin.Wait, again bool) bool {
	switch why.Reason {
	case "", admin.WaitRunning:
		return false
	case admin.WaitNoWorker, admin.WaitNoQueue, admin.WaitNoJob:
		return !o.here
	case admin.WaitWorkerGone, admin.WaitLane, admin.WaitLaneFree, admin.WaitDependency:
		return again
	case admin.WaitSlots:
		return again && why.Busy >= why.Slots
	case admin.WaitScheduled, admin.WaitBackoff:
		return again || time.Until(t.RunAt) >= lookEvery
	case admin.WaitLimit:
		return again || time.Until(why.Limit.NextAt) >= lookEvery
	}
	return true
}

// NoteWorkers says that no worker runs on this database. If this machine's
// service has another one, the user may have meant to run the command there.
func NoteWorkers(ctx context.Context, r *runner.Runner, p *ui.Printer, service, command string) error {
	if service == "" && !p.Interactive() {
		return nil
	}

	list, err := admin.Workers(ctx, r)
	if alive, _, _ := ui.LiveWorkers(list); err != nil || alive > 0 {
		return err
	}

	if service == "" {
		p.Note("no worker is running on this database")
	} else {
		p.Tell("no worker runs on %s; the service of this machine uses %s: sudo -u runner runner %s …",
			admin.Path(r), service, command)
	}

	return nil
}
