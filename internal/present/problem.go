package present

import (
	"fmt"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/timetext"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Problem is a condition that needs attention, described in words.
type Problem struct {
	Code    string // same as admin.Problem.Code
	Message string // one line, in lower case
	Try     string // command that helps, for the user to type
	About   string // name of the queue, worker or schedule that has the problem; empty for the whole database
}

// Problems returns the conditions that need attention, each with a command that helps. The parameter "workers" contains the workers that
// have a recent heartbeat.
func Problems(queues []runner.Queue, pauses runner.Pauses, workers []runner.Worker, schedules []jobs.Schedule, now time.Time) []Problem {
	return worded(admin.Problems(queues, pauses, workers, schedules, now), now)
}

// worded sorts problems and describes them in words.
func worded(found []admin.Problem, now time.Time) []Problem {
	list := []Problem{}
	admin.SortProblems(found)
	for _, p := range found {
		words := Problem{Code: p.Code, About: p.Queue}
		switch p.Code {
		case "paused", "deletion_paused":
			words.Message, words.Try = pauseProblem(p, now)
		case "lost_worker":
			words.About = p.Worker
			words.Message = fmt.Sprintf("worker %s has not been seen for %s and holds %s", p.Worker, humanize.Age(now.Sub(p.Since)),
				humanize.Plural(p.Tasks, "task"))
			words.Try = "runner list -s running --worker " + shellescape.Quote(p.Worker)
		case "stuck":
			words.Message, words.Try = stuckProblem(p)
		case "cursor_behind":
			words.About = p.Cursor
			words.Message = fmt.Sprintf("cursor %s has not delivered the ends of %s, the first since %s", p.Cursor,
				humanize.Plural(p.Tasks, "task"), humanize.Age(now.Sub(p.Since)))
			words.Try = "runner delete --cursor " + shellescape.Quote(p.Cursor)
		case "schedule_failed", "schedule_skips", "schedule_late", "schedule_slow", "schedule_waits":
			words.About = p.Schedule.Name
			words.Message, words.Try = scheduleProblem(p, now)
		case "lock_held", "idle_in_transaction", "snapshot_held":
			words.Message = sessionProblem(p.Code, *p.Session, now)
			words.Try = fmt.Sprintf(`psql -c "SELECT pg_terminate_backend(%d)"`, p.Session.PID)
		default:
			words.Message, words.Try = waitProblem(p)
		}
		list = append(list, words)
	}
	return list
}

func stuckProblem(p admin.Problem) (message, try string) {
	if p.Tasks == 1 {
		return fmt.Sprintf("task %d ignores its timeout or a request to stop", p.Task), fmt.Sprintf("runner show %d", p.Task)
	}
	return fmt.Sprintf("%s ignore their timeout or a request to stop, such as task %d", humanize.Plural(p.Tasks, "task"), p.Task),
		fmt.Sprintf("runner show %d", p.Task)
}

// maxReason is how many bytes of a reason a message shows.
const maxReason = 200

func pauseProblem(p admin.Problem, now time.Time) (message, try string) {
	if p.Code == "deletion_paused" {
		return "workers delete no old tasks for an hour: " + p.Reason, "runner resume --deletion"
	}
	what, has, target := p.Queue, "has", "-q "+p.Queue
	if p.Queue == "" {
		what, has, target = "all queues", "have", "--all"
	}
	message = fmt.Sprintf("%s %s been paused for %s with %s waiting", what, has, humanize.Age(now.Sub(p.Since)),
		humanize.Plural(p.Tasks, "task"))
	if !p.Until.IsZero() {
		message += ", until " + humanize.Clock(p.Until, now)
	}
	if p.Reason != "" {
		message += ": " + humanize.Safe(humanize.Cut(p.Reason, maxReason))
	}
	return message, "runner resume " + target
}

func waitProblem(p admin.Problem) (message, try string) {
	waits := humanize.Does(p.Tasks, "task", "waits", "wait")
	switch p.Code {
	case "no_worker":
		waits = humanize.Does(p.Tasks, "task", "is unfinished", "are unfinished")
		if p.Tasks == 0 {
			waits = humanize.Does(p.Schedules, "schedule", "ticks", "tick")
		}
		return "no worker runs, and " + waits, "runner work"
	case "no_queue":
		return fmt.Sprintf("no worker serves queue %s, and %s", p.Queue, waits), "runner work -q " + p.Queue
	case "no_job":
		try = "runner work -q " + p.Queue
		if p.Job != jobs.CommandJob { // the program that runs this job is unknown, so suggest a list of the tasks
			try = fmt.Sprintf("runner list -q %s -j %s -s pending", p.Queue, p.Job)
		}
		return fmt.Sprintf("no worker of queue %s has job %s, and %s", p.Queue, p.Job, waits), try
	case "failed":
		count := humanize.Plural(p.Tasks, "task") + " failed"
		if p.Ends {
			count = humanize.Plural(p.Tasks, "failure")
		}
		return fmt.Sprintf("%s in %s in 24h", count, p.Queue),
			fmt.Sprintf("runner list -q %s -s failed --since 1d", p.Queue)
	}
	return p.Code, ""
}

func scheduleProblem(p admin.Problem, now time.Time) (message, try string) {
	s := p.Schedule
	due := humanize.Age(now.Sub(s.LastAt))
	switch p.Code {
	case "schedule_late":
		return fmt.Sprintf("no task of schedule %s has completed for %s; the limit is %s", s.Name, humanize.Age(now.Sub(p.Since)),
			timetext.WriteDuration(s.AlertAfter)), "runner schedule show " + s.Name
	case "schedule_waits":
		return fmt.Sprintf("the tick of schedule %s due %s ago waits: no worker has its function, or the function fails or hangs", s.Name,
			humanize.Age(now.Sub(p.Since))), "runner schedule show " + s.Name
	case "schedule_slow":
		return fmt.Sprintf("task %d of schedule %s has run for %s; 95%% of its tasks take at most %s", s.LastTaskID, s.Name,
			humanize.Age(now.Sub(p.Since)), timetext.WriteDuration(s.Usual)), fmt.Sprintf("runner show %d", s.LastTaskID)
	case "schedule_failed":
		return fmt.Sprintf("the last task of schedule %s failed, due %s ago", s.Name, due), "runner schedule show " + s.Name
	}
	return fmt.Sprintf("schedule %s has skipped %s; its task %d, due %s ago, is %s", s.Name, humanize.Plural(int(s.Skipped), "tick"),
			s.LastTaskID, due, s.LastState),
		fmt.Sprintf("runner show %d", s.LastTaskID)
}
