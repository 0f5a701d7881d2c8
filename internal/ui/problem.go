package ui

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Problem is a condition that needs attention.
type Problem struct {
	Code    string
	Message string // one line, in lower case
	Try     string // command that helps, for the user to type
	About   string // name of the queue, worker, cursor or schedule; empty for the whole database
}

func (s *Status) add(code, about, try, format string, args ...any) {
	s.Problems = append(s.Problems, Problem{code, fmt.Sprintf(format, args...), try, about})
}

// age returns how long ago a time was.
func (s *Status) age(t time.Time) string { return humanize.Age(s.Now.Sub(t)) }

// FindProblems sets Problems to what the other fields show.
func (s *Status) FindProblems() {
	s.Problems = []Problem{}
	ready := s.readyWorkers()
	if len(ready) == 0 {
		s.findIdleDatabase()
	}

	for _, q := range s.Queues {
		if len(ready) > 0 && q.Counts[jobs.Pending] > 0 && !Paused(q) {
			s.checkServed(q, ready)
		}
	}

	for _, q := range s.Queues {
		if q.Failed > 0 {
			s.add("failed", q.Name, "runner list -q "+q.Name+" -s failed --since 1d",
				"%s failed in %s in 24h", humanize.Plural(q.Failed, "task"), q.Name)
		}
	}

	for _, schedule := range s.Schedules {
		s.checkSchedule(schedule, len(ready) > 0)
	}

	s.findPauses()
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

// readyWorkers returns the workers that take tasks, and finds those that are
// lost with tasks. The worker of runner run takes only its own task.
func (s *Status) readyWorkers() (ready []admin.Worker) {
	for _, w := range s.Workers {
		switch {
		case w.State == db.WorkerLost && len(w.Running) > 0:
			s.add("lost_worker", w.Name, "runner list -s running --worker "+shellescape.Quote(w.Name),
				"worker %s has not been seen for %s and holds %s", w.Name, s.age(w.BeatAt),
				humanize.Plural(len(w.Running), "task"))
		case w.State == db.WorkerReady && len(w.Jobs) > 0:
			ready = append(ready, w)
		}
	}
	return ready
}

// findIdleDatabase finds work in a database without a worker.
func (s *Status) findIdleDatabase() {
	unfinished, ticking := 0, Ticking(s.Schedules)
	for _, q := range s.Queues {
		for _, n := range q.Counts {
			unfinished += n
		}
	}

	switch {
	case unfinished > 0:
		s.add("no_worker", "", "runner work", "no worker runs, and %s",
			humanize.Does(unfinished, "task", "is unfinished", "are unfinished"))
	case ticking > 0:
		s.add("no_worker", "", "runner work", "no worker runs, and %s",
			humanize.Does(ticking, "schedule", "ticks", "tick"))
	}
}

// checkServed finds pending tasks in a queue that no worker can run.
func (s *Status) checkServed(q admin.QueueStatus, ready []admin.Worker) {
	try := "runner work -q " + q.Name
	serving := slices.DeleteFunc(slices.Clone(ready), func(w admin.Worker) bool {
		serves := func(m jobs.QueueMax) bool { return m.Name == q.Name }
		return w.Queues != nil && !slices.ContainsFunc(w.Queues, serves)
	})
	if len(serving) == 0 {
		s.add("no_queue", q.Name, try, "no worker serves queue %s, and %s", q.Name,
			humanize.TasksWait(q.Counts[jobs.Pending]))
		return
	}

	for _, job := range slices.Sorted(maps.Keys(q.Jobs)) {
		if slices.ContainsFunc(serving, func(w admin.Worker) bool { return slices.Contains(w.Jobs, job) }) {
			continue
		}
		help := try
		if job != command.Job { // the program that runs this job is unknown
			help = fmt.Sprintf("runner list -q %s -j %s -s pending", q.Name, job)
		}
		s.add("no_job", q.Name, help, "no worker of queue %s has job %s, and %s", q.Name, job,
			humanize.TasksWait(q.Jobs[job]))
	}
}

// tickWaits is how long a tick may be due before that is a problem.
const tickWaits = time.Minute

// checkSchedule finds a schedule's problems. workers reports whether any worker
// could make its ticks.
func (s *Status) checkSchedule(c jobs.Schedule, workers bool) {
	add := func(code, format string, args ...any) {
		s.add(code, c.Name, "runner schedule show "+c.Name, format, args...)
	}
	if since, late := taskspec.Late(&c, s.Now); late {
		add("schedule_late", "no task of schedule %s has completed for %s; the limit is %s", c.Name,
			s.age(since), humanize.WriteDuration(c.AlertAfter))
	}

	overdue := !c.NextAt.IsZero() && s.Now.Sub(c.NextAt) > tickWaits
	switch {
	case overdue && c.OnTick:
		add("schedule_waits", "the tick of schedule %s due %s ago waits: "+
			"no worker has its function, or the function fails or hangs", c.Name, s.age(c.NextAt))
	case overdue && workers:
		add("schedule_waits", "schedule %s was due %s ago and has not ticked", c.Name, s.age(c.NextAt))
	}

	switch {
	case c.LastState == jobs.Failed:
		add("schedule_failed", "the last task of schedule %s failed, due %s ago", c.Name, s.age(c.LastAt))
	case c.LastState != "" && !c.LastState.Finished() && c.Skipped > 0 && c.Overlap == jobs.OverlapSkip:
		s.add("schedule_skips", c.Name, fmt.Sprintf("runner show %d", c.LastTaskID),
			"schedule %s has skipped %s; its task %d, due %s ago, is %s", c.Name,
			humanize.Plural(int(c.Skipped), "tick"), c.LastTaskID, s.age(c.LastAt), c.LastState)
	}
}

func (s *Status) findPauses() {
	all, everything := s.Holds.Pauses[admin.AllQueues]
	pending := 0
	for _, q := range s.Queues {
		pending += q.Counts[jobs.Pending]
		if own, ok := s.Holds.Pauses[q.Name]; ok && !everything {
			s.addPause(q.Name, q.Name+" has", "-q "+q.Name, own, q.Counts[jobs.Pending])
		}
	}

	if everything {
		s.addPause("", "all queues have", "--all", all, pending)
	}
	if pause, ok := s.Holds.Pauses[admin.DeletionPause]; ok {
		s.add("deletion_paused", "", "runner resume --deletion",
			"workers delete no old tasks for an hour: %s", pause.Reason)
	}
}

// maxReason is how many bytes of a reason a message shows.
const maxReason = 200

func (s *Status) addPause(queue, has, target string, p admin.Pause, pending int) {
	text := fmt.Sprintf("%s been paused for %s with %s waiting", has, s.age(p.At),
		humanize.Plural(pending, "task"))
	if !p.Until.IsZero() {
		text += ", until " + humanize.Clock(p.Until, s.Now)
	}
	if p.Reason != "" {
		text += ": " + humanize.Safe(humanize.Cut(p.Reason, maxReason))
	}
	s.add("paused", queue, "runner resume "+target, "%s", text)
}

// cursorBehind is how long a cursor may need to report the end of a task.
const cursorBehind = time.Hour

// readProblems adds the problems that need a look at the database.
func (s *Status) readProblems(ctx context.Context, r *runner.Runner) error {
	running, err := r.List(ctx, jobs.Filter{States: []jobs.State{jobs.Running}, OldestFirst: true})
	if err != nil {
		return err
	}

	var stuck []int64
	for i := range running {
		t := &running[i]
		live := func(w admin.Worker) bool { return w.ID == t.WorkerID && w.State != db.WorkerLost }
		if _, is := taskspec.Stuck(t, s.Now); is && slices.ContainsFunc(s.Workers, live) {
			stuck = append(stuck, t.ID)
		}
	}

	if len(stuck) > 0 {
		what := fmt.Sprintf("task %d ignores its timeout or a request to stop", stuck[0])
		if len(stuck) > 1 {
			what = fmt.Sprintf("%s ignore their timeout or a request to stop, such as task %d",
				humanize.Plural(len(stuck), "task"), stuck[0])
		}
		s.add("stuck", "", fmt.Sprintf("runner show %d", stuck[0]), "%s", what)
	}

	cursors, err := db.Of(r).Cursors(ctx)
	for _, c := range cursors {
		if !c.Since.IsZero() && s.Now.Sub(c.Since) > cursorBehind {
			s.add("cursor_behind", c.Name, "runner delete --cursor "+shellescape.Quote(c.Name),
				"cursor %s has not delivered the ends of %s, the first since %s", c.Name,
				humanize.Plural(c.Behind, "task"), s.age(c.Since))
		}
	}

	s.sort()
	return err
}
