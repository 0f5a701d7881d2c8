package ui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Problem is a condition that needs attention.
type Problem struct {
	Code    string
	Message string // one line, in lower case
	Try     string // command that helps, for the user to type
	About   string // name of the queue, worker, cursor or schedule that has the problem; empty for the whole database
}

// finder adds the problems of a status to it.
type finder struct {
	*Status
	ready []runner.Worker
}

func (f *finder) add(code, about, try, format string, args ...any) {
	f.Problems = append(f.Problems, Problem{Code: code, About: about, Try: try, Message: fmt.Sprintf(format, args...)})
}

// age returns how long ago a time was.
func (f *finder) age(t time.Time) string { return humanize.Age(f.Now.Sub(t)) }

// FindProblems sets Problems to what the other fields show.
func (s *Status) FindProblems() {
	s.Problems = []Problem{}
	f := finder{Status: s}
	f.checkWorkers()
	f.unserved()
	f.failures()
	for _, s := range f.Schedules {
		f.schedule(s)
	}
	f.paused()
	s.sort()
}

// ranks puts first what costs a person most: nothing runs at all, then
// schedules that should have done their work, then other faults, failed tasks,
// tasks for which there is no worker, and pauses, which a user has chosen.
var ranks = map[string]int{"no_worker": -2, "schedule_failed": -1, "schedule_late": -1, "schedule_waits": -1,
	"failed": 1, "no_queue": 2, "no_job": 2, "paused": 3, "deletion_paused": 3}

func (s *Status) sort() {
	slices.SortStableFunc(s.Problems, func(a, b Problem) int { return ranks[a.Code] - ranks[b.Code] })
}

// checkWorkers finds the ready workers, and the problems that workers have.
func (f *finder) checkWorkers() {
	for _, w := range f.Workers {
		switch w.State {
		case admin.WorkerLost:
			if len(w.Running) > 0 {
				f.add("lost_worker", w.Name, "runner list -s running --worker "+shellescape.Quote(w.Name),
					"worker %s has not been seen for %s and holds %s", w.Name, f.age(w.BeatAt), humanize.Plural(len(w.Running), "task"))
			}
		case admin.WorkerReady:
			if len(w.Jobs) > 0 { // runner run takes only its own task
				f.ready = append(f.ready, w)
			}
		}
	}
}

// unserved finds waiting tasks that no worker can run.
func (f *finder) unserved() {
	unfinished := 0
	for _, q := range f.Queues {
		for _, n := range q.Counts {
			unfinished += n
		}
	}

	if len(f.ready) == 0 {
		if unfinished > 0 {
			f.add("no_worker", "", "runner work", "no worker runs, and %s",
				humanize.Does(unfinished, "task", "is unfinished", "are unfinished"))
		} else if n := admin.Ticking(f.Schedules); n > 0 {
			f.add("no_worker", "", "runner work", "no worker runs, and %s", humanize.Does(n, "schedule", "ticks", "tick"))
		}
		return
	}

	for _, q := range f.Queues {
		if q.Counts[jobs.Pending] == 0 || !q.Pause.At.IsZero() {
			continue
		}
		serving := slices.DeleteFunc(slices.Clone(f.ready), func(w runner.Worker) bool {
			return w.Queues != nil && !slices.ContainsFunc(w.Queues, func(m runner.QueueMax) bool { return m.Queue == q.Queue })
		})
		if len(serving) == 0 {
			f.add("no_queue", q.Queue, "runner work -q "+q.Queue, "no worker serves queue %s, and %s", q.Queue,
				humanize.TasksWait(q.Counts[jobs.Pending]))
			continue
		}
		for _, job := range slices.Sorted(maps.Keys(q.Jobs)) {
			if slices.ContainsFunc(serving, func(w runner.Worker) bool { return slices.Contains(w.Jobs, job) }) {
				continue
			}
			try := "runner work -q " + q.Queue
			if job != jobs.CommandJob { // the program that runs this job is unknown, so suggest a list of the tasks
				try = fmt.Sprintf("runner list -q %s -j %s -s pending", q.Queue, job)
			}
			f.add("no_job", q.Queue, try, "no worker of queue %s has job %s, and %s", q.Queue, job, humanize.TasksWait(q.Jobs[job]))
		}
	}
}

func (f *finder) failures() {
	for _, q := range f.Queues {
		if q.Failed > 0 {
			f.add("failed", q.Queue, "runner list -q "+q.Queue+" -s failed --since 1d", "%s failed in %s in 24h",
				humanize.Plural(q.Failed, "task"), q.Queue)
		}
	}
}

// tickWaits is how long a tick may be due before that is a problem.
const tickWaits = time.Minute

func (f *finder) schedule(s jobs.Schedule) {
	show, task := "runner schedule show "+s.Name, fmt.Sprintf("runner show %d", s.LastTaskID)
	if since, late := taskspec.Late(&s, f.Now); late {
		f.add("schedule_late", s.Name, show, "no task of schedule %s has completed for %s; the limit is %s", s.Name, f.age(since),
			humanize.WriteDuration(s.AlertAfter))
	}

	overdue := !s.NextAt.IsZero() && f.Now.Sub(s.NextAt) > tickWaits
	switch {
	case overdue && s.OnTick:
		f.add("schedule_waits", s.Name, show,
			"the tick of schedule %s due %s ago waits: no worker has its function, or the function fails or hangs", s.Name, f.age(s.NextAt))
	case overdue && len(f.ready) > 0:
		f.add("schedule_waits", s.Name, show, "schedule %s was due %s ago and has not ticked", s.Name, f.age(s.NextAt))
	}

	switch {
	case s.LastState == jobs.Failed:
		f.add("schedule_failed", s.Name, show, "the last task of schedule %s failed, due %s ago", s.Name, f.age(s.LastAt))
	case s.LastState != "" && !s.LastState.Finished() && s.Skipped > 0 && s.Overlap == jobs.OverlapSkip:
		f.add("schedule_skips", s.Name, task, "schedule %s has skipped %s; its task %d, due %s ago, is %s", s.Name,
			humanize.Plural(int(s.Skipped), "tick"), s.LastTaskID, f.age(s.LastAt), s.LastState)
	}
}

func (f *finder) paused() {
	all, everything := f.Holds.Pauses[runner.AllQueues]
	pending := 0
	for _, q := range f.Queues {
		pending += q.Counts[jobs.Pending]
		if own, ok := f.Holds.Pauses[q.Queue]; ok && !everything {
			f.pause(q.Queue, q.Queue+" has", "-q "+q.Queue, own, q.Counts[jobs.Pending])
		}
	}

	if everything {
		f.pause("", "all queues have", "--all", all, pending)
	}

	if pause, ok := f.Holds.Pauses[runner.DeletionPause]; ok {
		f.add("deletion_paused", "", "runner resume --deletion", "workers delete no old tasks for an hour: %s", pause.Reason)
	}
}

// maxReason is how many bytes of a reason a message shows.
const maxReason = 200

func (f *finder) pause(queue, has, target string, p runner.Pause, pending int) {
	text := fmt.Sprintf("%s been paused for %s with %s waiting", has, f.age(p.At), humanize.Plural(pending, "task"))
	if !p.Until.IsZero() {
		text += ", until " + humanize.Clock(p.Until, f.Now)
	}
	if p.Reason != "" {
		text += ": " + humanize.Safe(humanize.Cut(p.Reason, maxReason))
	}
	f.add("paused", queue, "runner resume "+target, "%s", text)
}

// cursorBehind is how long a cursor may need to report the end of a task.
const cursorBehind = time.Hour

// readProblems adds the problems that need a look at the database.
func (s *Status) readProblems(ctx context.Context, r *runner.Runner) error {
	f := finder{Status: s}
	running, err := r.List(ctx, jobs.Filter{States: []jobs.State{jobs.Running}}, runner.Page{Oldest: true})
	if err != nil {
		return err
	}

	var stuck []int64
	for i := range running {
		t := &running[i]
		live := func(w runner.Worker) bool { return w.ID == t.WorkerID && w.State != admin.WorkerLost }
		if _, is := taskspec.Stuck(t, f.Now); is && slices.ContainsFunc(f.Workers, live) {
			stuck = append(stuck, t.ID)
		}
	}

	if len(stuck) > 0 {
		what := fmt.Sprintf("task %d ignores its timeout or a request to stop", stuck[0])
		if len(stuck) > 1 {
			what = fmt.Sprintf("%s ignore their timeout or a request to stop, such as task %d", humanize.Plural(len(stuck), "task"),
				stuck[0])
		}
		f.add("stuck", "", fmt.Sprintf("runner show %d", stuck[0]), "%s", what)
	}

	cursors, err := admin.Store(r).Cursors(ctx)
	if err != nil {
		return err
	}

	for _, c := range cursors {
		if !c.Since.IsZero() && f.Now.Sub(c.Since) > cursorBehind {
			f.add("cursor_behind", c.Name, "runner delete --cursor "+shellescape.Quote(c.Name),
				"cursor %s has not delivered the ends of %s, the first since %s", c.Name, humanize.Plural(c.Behind, "task"), f.age(c.Since))
		}
	}

	s.sort()
	return nil
}
