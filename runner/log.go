package runner

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/tasktext"
	"example.com/runner/jobs"
)

// The keys of log records: task attempt job queue exit signal took worker err, and few more. Arguments stand there as in lists:
// cut, and never the environment.

func (e *engine) ready() {
	queues := "all"
	if e.limit != nil {
		names := make([]string, 0, len(e.limit))
		for _, q := range e.r.options.Queues {
			names = append(names, q.Queue)
		}
		queues = strings.Join(names, ",")
	}
	e.log.Info("ready", "db", e.r.Path(), "slots", e.slots, "queues", queues)
}

func attemptOf(t jobs.Task) string {
	return strconv.Itoa(t.Attempt) + "/" + strconv.Itoa(t.MaxAttempts)
}

func (e *engine) logStart(a *attempt) {
	if !e.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	args := []any{"task", a.task.ID, "attempt", attemptOf(a.task), "queue", a.task.Queue}
	if a.task.Job == jobs.CommandJob {
		args = append(args, "cmd", cut(tasktext.Describe(a.task), 80))
	} else {
		args = append(args, "job", a.task.Job)
	}
	e.log.Info("start", args...)
}

func (e *engine) logEnd(a *attempt, c jobs.Change) {
	level, text := slog.LevelInfo, "completed"
	switch {
	case c.State == jobs.Failed:
		level, text = slog.LevelError, "task failed"
	case c.State == jobs.Pending:
		level, text = slog.LevelWarn, "given back"
	case c.State == jobs.Cancelled:
		text = "cancelled"
	case c.State == jobs.Scheduled:
		text = "snoozed"
	case c.State == jobs.Retrying:
		level, text = slog.LevelWarn, "attempt failed"
	}
	if !e.log.Enabled(context.Background(), level) {
		return
	}
	o := a.outcome
	args := []any{"task", a.task.ID, "attempt", attemptOf(a.task)}
	if a.task.Job != jobs.CommandJob {
		args = append(args, "job", a.task.Job)
	}
	switch {
	case o.ExitCode != nil && c.State != jobs.Completed:
		args = append(args, "exit", *o.ExitCode)
	case o.Signal != 0:
		args = append(args, "signal", o.Signal)
	}
	args = append(args, "took", o.Duration.Round(time.Millisecond))
	if c.Reason != "" && c.Reason != jobs.ReasonExit && c.Reason != jobs.ReasonSignal {
		args = append(args, "reason", string(c.Reason))
	}
	if c.Error != "" && c.Reason != jobs.ReasonExit && c.Reason != jobs.ReasonSignal {
		line, _, _ := strings.Cut(c.Error, "\n")
		args = append(args, "err", cut(line, 200))
	}
	if c.State == jobs.Retrying || c.State == jobs.Scheduled {
		args = append(args, "next", c.RunAt)
	}
	e.log.Log(context.Background(), level, text, args...)
}

// cut shortens text to at most n bytes, with a mark.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-len("…")], "") + "…"
}
