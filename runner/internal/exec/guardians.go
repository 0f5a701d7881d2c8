package exec

import (
	"errors"
	"sync/atomic"

	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// guardianCalled is true after main has called Guardian.
var guardianCalled atomic.Bool

// Guardian does the work of a guardian if this process is one, and returns true
// afterwards. It must be the first call in main.
func Guardian(version string) bool {
	guardianCalled.Store(true)
	return supervisor.Guard(version)
}

// CheckGuardian returns an error if this program can't guard commands. path is
// the guardians' program; empty for this one.
func CheckGuardian(path string) error {
	if supervisor.HasGuardians && !guardianCalled.Load() && path == "" {
		return &jobs.Error{Kind: jobs.ErrInvalid, What: "commands cannot run unguarded",
			Why:  []string{"main does not begin with: if commands.Guardian() { return }"},
			Hint: "add it, or set GuardianPath of commands.Options"}
	}
	return nil
}

// logRest logs the processes that a command has left behind.
func (c *Command) logRest(exit supervisor.Exit) {
	switch {
	case exit.LeftOver > 0:
		c.Log.Warn("killed processes that the command left behind", "task", c.Task.ID, "processes", exit.LeftOver,
			"hint", "the task option leave_children lets them live on")
	case exit.Left > 0:
		c.Log.Info("processes that the command left behind live on", "task", c.Task.ID, "processes", exit.Left)
	}
	for _, p := range exit.Denied {
		c.Log.Warn("a process of another user has outlived its task and cannot be killed",
			"task", c.Task.ID, "pid", p.PID, "name", p.Name, "uid", p.UID)
	}
}

// IsLoss reports whether a command was lost: its guardian died, or killed it
// because the lease had expired.
func IsLoss(err error) bool {
	return errors.Is(err, supervisor.ErrLost) || errors.Is(err, supervisor.ErrDeadline)
}
