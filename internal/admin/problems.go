package admin

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Problem is a condition that needs attention. The code decides which other fields are set, and what they mean:
//
//	paused           a user has paused Queue at Since because of Reason, and this number of Tasks is pending; an empty Queue means all;
//	                 the pause ends by itself at Until, if that is set
//	deletion_paused  the workers delete no old tasks, because of Reason
//	lost_worker      Worker has sent no heartbeat since Since, and this number of its Tasks is still in state running
//	stuck            this number of Tasks still runs after the time at which they should have stopped; Task is the first of them
//	cursor_behind    this number of Tasks ended more than an hour ago, the first one at Since, and Cursor has not reported their ends yet
//	no_worker        no worker is ready, although this number of Tasks is unfinished and this number of Schedules is active
//	no_queue         no ready worker serves Queue, and this number of Tasks waits in it
//	no_job           no ready worker that serves Queue can run Job, and this number of Tasks waits for that
//	failed           this number of Tasks of Queue failed in the last 24 hours and is still in state failed; but if Ends is set, Tasks
//	                 is the number of failures in these hours, including failures of tasks that have completed since
//	schedule_failed  the last task of Schedule has failed
//	schedule_late    no task of Schedule has completed since Since, which is longer ago than AlertAfter of the schedule
//	schedule_waits   Schedule has no task for its tick at Since, because no worker has the function for it or the function fails
//	schedule_slow    the last task of Schedule has been running since Since, which is more than twice its usual time
//	schedule_skips   Schedule has skipped ticks, because its last task is still unfinished
//
// For a database on a server, ServerProblems has further codes.
type Problem struct {
	Code      string
	Queue     string
	Job       string
	Worker    string // name of the worker
	Cursor    string // name of the cursor
	Since     time.Time
	Until     time.Time
	Reason    string
	Tasks     int
	Ends      bool
	Task      int64 // id of the task
	Schedules int
	Schedule  jobs.Schedule
	Session   *Session // that has the problem; only on a server
}

// snapshot is the data in which Problems looks for problems.
type snapshot struct {
	queues    []runner.Queue
	pauses    runner.Pauses
	workers   []runner.Worker // workers with a recent heartbeat
	ready     []runner.Worker
	schedules []jobs.Schedule
	found     []Problem
}

// Problems returns the conditions that need attention. The parameter "workers" contains the workers that have a recent heartbeat.
func Problems(queues []runner.Queue, pauses runner.Pauses, workers []runner.Worker, schedules []jobs.Schedule, now time.Time) []Problem {
	s := snapshot{queues: queues, pauses: pauses, workers: workers, schedules: schedules}
	s.checkWorkers()
	s.unserved()
	ends := FailuresOnly(queues)
	for _, q := range queues {
		if q.Failed > 0 {
			s.add(Problem{Code: "failed", Queue: q.Queue, Tasks: q.Failed, Ends: ends})
		}
	}
	for _, schedule := range schedules {
		if since, late := lifecycle.Late(&schedule, now); late {
			s.add(Problem{Code: "schedule_late", Schedule: schedule, Since: since})
		}
		if schedule.OnTick && !schedule.NextAt.IsZero() && now.Sub(schedule.NextAt) > tickWaits {
			s.add(Problem{Code: "schedule_waits", Schedule: schedule, Since: schedule.NextAt})
		}
		if lifecycle.Slow(&schedule, now) {
			s.add(Problem{Code: "schedule_slow", Schedule: schedule, Since: schedule.LastStart})
		}
		switch {
		case schedule.LastState == jobs.Failed:
			s.add(Problem{Code: "schedule_failed", Schedule: schedule})
		case schedule.LastState != "" && !schedule.LastState.Finished() && schedule.Skipped > 0 && schedule.Overlap == jobs.OverlapSkip:
			s.add(Problem{Code: "schedule_skips", Schedule: schedule})
		}
	}
	s.paused()
	return s.found
}

// FailuresOnly reports whether the field Failed of the queues counts all failures, including those of tasks that have completed since. This
// is so if the sum of the field over all queues is 1000 or more. Otherwise the field counts the tasks that are still failed.
func FailuresOnly(queues []runner.Queue) bool {
	failed := 0
	for _, q := range queues {
		failed += q.Failed
	}
	return failed >= 1000
}

// SortProblems puts first what costs a person most: nothing runs at all, then
// schedules that should have done their work, then other faults, failed tasks,
// tasks for which there is no worker, and pauses, which a user has chosen.
func SortProblems(list []Problem) {
	rank := func(p Problem) int {
		switch p.Code {
		case "no_worker":
			return 0
		case "schedule_failed", "schedule_late", "schedule_waits":
			return 1
		case "failed":
			return 3
		case "no_queue", "no_job":
			return 4
		case "paused", "deletion_paused":
			if p.Tasks > 0 {
				return 5
			}
			return 6
		}
		return 2
	}
	slices.SortStableFunc(list, func(a, b Problem) int { return rank(a) - rank(b) })
}

// tickWaits is how long a due tick of a schedule may remain without a task. After that time the missing task is a problem.
const tickWaits = time.Minute

// cursorBehind is how long a cursor may need to report the end of a task. After that time the delay is a problem.
const cursorBehind = time.Hour

// MoreProblems finds the problems that Problems cannot find in its parameters. It reads the database. The parameter
// "workers" contains the workers that have a recent heartbeat.
func MoreProblems(ctx context.Context, r *runner.Runner, workers []runner.Worker, now time.Time) (found []Problem, err error) {
	running, err := r.List(ctx, jobs.Filter{States: []jobs.State{jobs.Running}}, runner.Page{Oldest: true})
	var stuck []int64
	for i := range running {
		t := &running[i]
		live := func(w runner.Worker) bool { return w.ID == t.WorkerID && w.State != WorkerLost }
		if _, is := lifecycle.Stuck(t, now); is && slices.ContainsFunc(workers, live) {
			stuck = append(stuck, t.ID)
		}
	}
	if len(stuck) > 0 {
		found = append(found, Problem{Code: "stuck", Task: stuck[0], Tasks: len(stuck)})
	}
	if err != nil {
		return found, err
	}
	cursors, err := Store(r).Cursors(ctx)
	for _, c := range cursors {
		if !c.Since.IsZero() && now.Sub(c.Since) > cursorBehind {
			found = append(found, Problem{Code: "cursor_behind", Cursor: c.Name, Tasks: c.Behind, Since: c.Since})
		}
	}
	if err != nil {
		return found, err
	}
	health, err := Store(r).Health(ctx, now)
	return append(found, ServerProblems(health, now)...), err
}

func (s *snapshot) add(p Problem) { s.found = append(s.found, p) }

func (s *snapshot) paused() {
	all, everything := s.pauses[runner.AllQueues]
	pending := 0
	for _, q := range s.queues {
		pending += q.Counts[jobs.Pending]
		if own, ok := s.pauses[q.Queue]; ok && !everything {
			s.add(Problem{Code: "paused", Queue: q.Queue, Since: own.At, Until: own.Until, Reason: own.Reason,
				Tasks: q.Counts[jobs.Pending]})
		}
	}
	if everything {
		s.add(Problem{Code: "paused", Since: all.At, Until: all.Until, Reason: all.Reason, Tasks: pending})
	}
	if pause, ok := s.pauses[runner.DeletionPause]; ok {
		s.add(Problem{Code: "deletion_paused", Reason: pause.Reason})
	}
}

// These are the states of a worker. See runner.Worker.State.
const (
	WorkerReady    = db.WorkerReady
	WorkerDraining = db.WorkerDraining
	WorkerLost     = db.WorkerLost
)

// checkWorkers finds the ready workers, and the problems that workers have.
func (s *snapshot) checkWorkers() {
	for _, w := range s.workers {
		switch {
		case w.State == WorkerLost && len(w.Running) > 0:
			s.add(Problem{Code: "lost_worker", Worker: w.Name, Since: w.BeatAt, Tasks: len(w.Running)})
		case w.State == WorkerLost, w.State == WorkerDraining:
		default:
			s.ready = append(s.ready, w)
		}
	}
}

// unserved adds a problem for waiting tasks that no worker can run.
func (s *snapshot) unserved() {
	waiting := 0
	for _, q := range s.queues {
		for _, n := range q.Counts { // count all unfinished tasks, because the problem no_worker counts running tasks, too
			waiting += n
		}
	}
	if n := Ticking(s.schedules); len(s.ready) == 0 && (waiting > 0 || n > 0) {
		s.add(Problem{Code: "no_worker", Tasks: waiting, Schedules: n})
	}
	for _, q := range s.queues {
		if len(s.ready) == 0 || q.Counts[jobs.Pending] == 0 || !q.Pause.At.IsZero() {
			continue
		}
		serving := slices.DeleteFunc(slices.Clone(s.ready), func(w runner.Worker) bool {
			return w.Queues != nil && !NamesQueue(w, q.Queue)
		})
		if len(serving) == 0 {
			s.add(Problem{Code: "no_queue", Queue: q.Queue, Tasks: q.Counts[jobs.Pending]})
			continue
		}
		for _, job := range slices.Sorted(maps.Keys(q.Jobs)) {
			if !slices.ContainsFunc(serving, func(w runner.Worker) bool { return slices.Contains(w.Jobs, job) }) {
				s.add(Problem{Code: "no_job", Queue: q.Queue, Job: job, Tasks: q.Jobs[job]})
			}
		}
	}
}

// NamesQueue reports whether the list of a worker's queues contains a queue. A worker without a list serves all queues, but names none.
func NamesQueue(w runner.Worker, queue string) bool {
	return slices.ContainsFunc(w.Queues, func(q runner.QueueMax) bool { return q.Queue == queue })
}

// Ticking counts the active schedules, which are those that are not paused.
func Ticking(schedules []jobs.Schedule) (n int) {
	for _, s := range schedules {
		if s.PausedAt.IsZero() {
			n++
		}
	}
	return n
}

// LiveWorkers returns the number of workers that take tasks and are not lost,
// the sum of their busy slots, and the sum of all their slots. A worker may run
// more tasks than it has slots, because tasks that one call of a function handles
// together share a slot. All its slots then count as busy.
func LiveWorkers(workers []runner.Worker) (alive, busy, slots int) {
	for _, w := range workers {
		if w.State != WorkerLost && len(w.Jobs) > 0 {
			alive++
			busy += min(len(w.Running), w.Slots)
			slots += w.Slots
		}
	}
	return alive, busy, slots
}

// AllPaused reports whether all queues are paused.
func AllPaused(pauses runner.Pauses) bool {
	_, ok := pauses[runner.AllQueues]
	return ok
}
