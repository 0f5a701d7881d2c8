package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/admin"
)

// JobText returns the column JOB of a list: the task's label, if there is one,
// and the command or function. It may have control characters.
func JobText(t jobs.Task) string {
	if t.Label != "" {
		return t.Label + ": " + taskspec.Describe(&t)
	}
	return taskspec.Describe(&t)
}

// Attempts returns how often a task has started, and how often it may: 1/3.
func Attempts(t jobs.Task) string {
	if t.MaxAttempts == 0 {
		return fmt.Sprintf("%d/–", t.Attempt)
	}
	return fmt.Sprintf("%d/%d", t.Attempt, t.MaxAttempts)
}

// DueOf returns the tick that made a task, or when it's due if no tick did.
func DueOf(t jobs.Task) time.Time {
	if t.Tick.IsZero() {
		return t.RunAt
	}
	return t.Tick
}

// Lasted returns how long the current or last attempt has run. ok is false if
// the task has never started.
func Lasted(t jobs.Task, now time.Time) (d time.Duration, ok bool) {
	switch {
	case t.StartedAt.IsZero():
		return 0, false
	case t.State == jobs.Running:
		return max(now.Sub(t.StartedAt), 0), true
	}
	return t.Duration, true
}

// Headline describes a task's state in one line.
func Headline(t jobs.Task, now time.Time) string {
	attempt := fmt.Sprintf("attempt %d of %d", t.Attempt, t.MaxAttempts)
	lasted, _ := Lasted(t, now)
	var parts []string
	switch word := Note(t, Holds{}, now); {
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
	default: // the task is due, and nothing stops it from starting
		parts = []string{Ending(t.Reason, t.ExitCode, t.Signal), "due " + humanize.Age(now.Sub(t.RunAt)) + " ago"}
	}

	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

// LimitRunning returns how many tasks run under a limit and how many may: 1/2.
// It's empty if the limit doesn't restrict that.
func LimitRunning(l admin.LimitStatus) string {
	if l.Running == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", l.InUse, l.Running)
}

// LimitRate returns how often tasks under a limit may start: 100/1m. It's empty
// without a rate.
func LimitRate(l admin.LimitStatus) string {
	if l.Rate == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%s", l.Rate, humanize.WriteDuration(l.Per))
}

// maxNote is how many bytes of a task's error a note shows.
const maxNote = 24

// Note returns the column NOTE of a list: the most important fact about a task,
// in a word or two.
func Note(t jobs.Task, h Holds, now time.Time) string {
	if note := holdNote(t, h); note != "" {
		return note
	}

	switch t.State {
	case jobs.Scheduled, jobs.Retrying:
		if !t.RunAt.After(now) {
			return "due" // the due time has come, but no worker has made the task pending yet
		}
		return "in " + humanize.Age(humanize.Soon(t.RunAt.Sub(now)))
	case jobs.Blocked:
		return blockedBy(t)
	case jobs.Running:
		if !t.CancelRequestedAt.IsZero() {
			return "stopping"
		}
		return shortProgress(t.Progress)
	case jobs.Cancelled:
		if t.Reason == jobs.ReasonExpired {
			return "expired"
		}
		line, _, _ := strings.Cut(t.Error, "\n")
		return humanize.Cut(line, maxNote) // this line says who cancelled the task, or which dependency failed
	}

	if t.Reason == jobs.ReasonLost {
		return fmt.Sprintf("lost %d", t.Losses)
	}

	return Ending(t.Reason, t.ExitCode, t.Signal)
}

// blockedBy says in a word or two why a task is blocked: after 1036, or the
// name of its lane.
func blockedBy(t jobs.Task) string {
	waits := slices.Concat(t.DependsOn, t.DependsOnAny)
	switch {
	case !t.PausedAt.IsZero():
		return "paused"
	case len(waits) == 1:
		return fmt.Sprintf("after %d", waits[0])
	case len(waits) > 1:
		return fmt.Sprintf("after %d +%d", waits[0], len(waits)-1)
	}

	return "lane " + t.Lane
}

// Ending says in a word or two how an attempt failed: exit 22, signal 9, not
// found, timeout.
func Ending(reason jobs.Reason, exitCode *int, signal int) string {
	switch {
	case reason == jobs.ReasonExit && exitCode != nil:
		return fmt.Sprintf("exit %d", *exitCode)
	case reason == jobs.ReasonSignal:
		return fmt.Sprintf("signal %d", signal)
	case reason == jobs.ReasonStart && exitCode != nil && *exitCode == notFound:
		return "not found"
	case reason == jobs.ReasonStart:
		return "not started"
	case reason == jobs.ReasonArgs:
		return "invalid args"
	}
	return string(reason)
}

// ErrorLine returns the most useful line about a failed attempt: the first line
// of its error or, if that has only the exit status or the signal, the last
// line that the command printed. It may be empty, or have control characters.
func ErrorLine(t jobs.Task) string {
	if t.State != jobs.Failed && t.State != jobs.Retrying {
		return ""
	}
	line, _, _ := strings.Cut(t.Error, "\n")
	if t.Reason == jobs.ReasonExit || t.Reason == jobs.ReasonSignal {
		line = "" // ignore this error, because it contains only the exit status or the signal
	}
	return cmp.Or(line, t.ErrorLine)
}

// LeftBehind describes the processes that a task's last command left behind, if
// there were any.
func LeftBehind(t *jobs.Task) string {
	switch {
	case t.ChildrenKilled > 0:
		return fmt.Sprintf("%d that the command left behind, killed; enqueue --leave-children lets them live on", t.ChildrenKilled)
	case t.ChildrenLeft > 0:
		return fmt.Sprintf("%d that the command left behind, not killed", t.ChildrenLeft)
	}
	return ""
}

// Used describes what a command used, if that's known.
func Used(u command.Usage) string {
	text := CPU(u)
	if text != "" {
		text = "CPU " + text
	}
	if u.MaxRSS > 0 {
		text += fmt.Sprintf(", memory %s, read %s, wrote %s", Memory(u), humanize.Size(u.Read), humanize.Size(u.Written))
	}
	return text
}

// CPU returns an attempt's processor time, if it's known.
func CPU(u command.Usage) string {
	if u == (command.Usage{}) {
		return ""
	}
	return humanize.Took(u.User + u.System)
}

// Memory returns an attempt's peak memory, if it's known.
func Memory(u command.Usage) string {
	if u.MaxRSS == 0 {
		return ""
	}
	return humanize.Size(u.MaxRSS)
}

// Progress returns all that a function has reported: 12/40: page 12.
func Progress(p *jobs.Progress) string {
	if p == nil {
		return ""
	}

	switch {
	case p.Text == "":
		return shortProgress(p)
	case p.Done == 0 && p.Total == 0:
		return p.Text
	case p.Total == 0:
		return fmt.Sprintf("%d: %s", p.Done, p.Text)
	}

	return shortProgress(p) + ": " + p.Text
}

// shortProgress returns the progress for a list's column: numbers such as
// 12/40, or the beginning of the text.
func shortProgress(p *jobs.Progress) string {
	switch {
	case p == nil:
		return ""
	case p.Total != 0:
		return fmt.Sprintf("%d/%d", p.Done, p.Total)
	}
	return cmp.Or(humanize.Cut(p.Text, 12), strconv.FormatInt(p.Done, 10))
}

// holdNote says in a word or two why a pending task can't start, or that a
// running task's worker has died.
func holdNote(t jobs.Task, h Holds) string {
	if t.State == jobs.Running && h.Dead[t.WorkerID] {
		return "worker died"
	}

	if t.State != jobs.Pending {
		return ""
	}

	if _, paused := h.Pauses.Of(t.Queue); paused {
		return "paused"
	}

	if _, held := h.Limits.Holding(&t); held {
		return "limit"
	}

	return ""
}
