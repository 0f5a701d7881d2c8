package runner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// Describe says in one line what a task runs: a command quoted for a shell, or the name of a job and its arguments. It is
// text of whoever enqueued the task: not fit for a terminal as it is.
func Describe(t jobs.Task) string {
	if t.Job != jobs.CommandJob {
		return strings.TrimSpace(t.Job + " " + string(t.Args))
	}
	argv, err := jobs.Argv(t.Args)
	if err != nil {
		return strings.TrimSpace(t.Job + " " + string(t.Args))
	}
	return shellescape.QuoteCommand(argv)
}

// JobText is Describe with the task's label before it, if it has one: the column JOB of lists.
func JobText(t jobs.Task) string {
	if t.Label != "" {
		return t.Label + ": " + Describe(t)
	}
	return Describe(t)
}

// Lasted is how long the current or last attempt of a task has run; ok is false when there was none.
func Lasted(t jobs.Task, now time.Time) (d time.Duration, ok bool) {
	switch {
	case t.StartedAt.IsZero():
		return 0, false
	case t.State == jobs.Running:
		return max(now.Sub(t.StartedAt), 0), true
	}
	return t.Duration, true
}

// Headline says how a task stands.
func Headline(t jobs.Task, now time.Time) string {
	attempt := fmt.Sprintf("attempt %d of %d", t.Attempt, t.MaxAttempts)
	lasted, _ := Lasted(t, now)
	var parts []string
	switch word := Note(t, Gates{}, now); {
	case t.State == jobs.Running:
		parts = []string{attempt, "for " + humanize.Took(lasted), word}
	case t.State == jobs.Retrying:
		parts = []string{attempt + " failed", "next " + word}
	case t.State == jobs.Scheduled && t.RunAt.After(now):
		parts = []string{"starts " + word}
	case t.State == jobs.Completed:
		parts = []string{"took " + humanize.Took(lasted), humanize.Age(now.Sub(t.FinishedAt)) + " ago"}
	case t.State == jobs.Failed && t.Reason != jobs.ReasonLost && t.Reason != jobs.ReasonShutdown:
		parts = []string{word + " in " + attempt, humanize.Age(now.Sub(t.FinishedAt)) + " ago"}
	case t.State.Finished():
		parts = []string{word, humanize.Age(now.Sub(t.FinishedAt)) + " ago"}
	case t.State == jobs.Blocked:
		parts = []string{word}
	default: // it may start
		parts = []string{Ending(t.Reason, t.ExitCode, t.Signal), "due " + humanize.Age(now.Sub(t.RunAt)) + " ago"}
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

// LimitRunning is how many tasks of a limit run, and how many may: 1/2; empty: that is not limited.
func LimitRunning(l LimitStat) string {
	if l.Running == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", l.InUse, l.Running)
}

// LimitRate is how often tasks of a limit may start: 100/1m; empty: that is not limited.
func LimitRate(l LimitStat) string {
	if l.Rate == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%s", l.Rate, jobs.WriteDuration(l.Per))
}
