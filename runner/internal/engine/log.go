package engine

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// The keys of log records are task, attempt, job, queue, exit, signal, took,
// worker, err, and a few others. The log shows commands as `runner list` does:
// shortened, and never with their environment.

func (e *Engine) logReady() {
	e.mu.Lock()
	defer e.mu.Unlock()

	queues := "all"
	if e.o.Queues != nil {
		var names []string
		for _, q := range e.o.Queues {
			names = append(names, q.Name)
		}
		queues = strings.Join(names, ",")
	}
	e.log.Info("ready", "db", e.store.Path(), "slots", e.o.Concurrency, "queues", queues)
}

func attemptOf(t *jobs.Task) string {
	return strconv.Itoa(t.Attempt) + "/" + strconv.Itoa(t.MaxAttempts)
}

func (e *Engine) logStart(a *attempt) {
	if !e.log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	args := []any{"task", a.task.ID, "attempt", attemptOf(&a.task), "queue", a.task.Queue}
	if a.task.Job == command.Job {
		args = append(args, "cmd", humanize.Cut(taskspec.Describe(&a.task), 80))
	} else {
		args = append(args, "job", a.task.Job)
	}
	e.log.Info("start", args...)
}

func (e *Engine) logEnd(a *attempt, c taskspec.Change) {
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
	args := []any{"task", a.task.ID, "attempt", attemptOf(&a.task)}
	if a.task.Job != command.Job {
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
		args = append(args, "err", humanize.Cut(line, 200))
	}
	if c.Reason == jobs.ReasonPanic {
		_, stack, _ := strings.Cut(c.Error, "\n\n")
		args = append(args, "stack", stack)
	}
	if c.State == jobs.Retrying || c.State == jobs.Scheduled {
		args = append(args, "next", c.RunAt)
	}

	e.log.Log(context.Background(), level, text, args...)
}
