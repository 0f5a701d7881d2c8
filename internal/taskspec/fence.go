package taskspec

import (
	"fmt"

	"example.com/runner/jobs"
)

// CheckOwner returns nil if task t is running with the given generation and nobody has asked to cancel it. Otherwise the attempt of this
// generation must stop, and CheckOwner returns a *jobs.Error of kind jobs.ErrCancelled or jobs.ErrLost.
func CheckOwner(t jobs.Task, generation int64) error {
	problem := func(kind error, format string, args ...any) error {
		return &jobs.Error{Kind: kind, What: fmt.Sprintf("task %d ", t.ID) + fmt.Sprintf(format, args...)}
	}
	switch {
	case t.GenerationID < generation:
		return problem(jobs.ErrLost, "never had generation %d, only %d", generation, t.GenerationID)
	case t.State == jobs.Running && t.GenerationID > generation:
		return problem(jobs.ErrLost, "is owned by a later attempt (generation %d, this is %d)", t.GenerationID, generation)
	case t.State != jobs.Running:
		return problem(jobs.ErrLost, "is %s, no longer running (generation %d, this is %d)", t.State, t.GenerationID, generation)
	case !t.CancelRequestedAt.IsZero():
		return problem(jobs.ErrCancelled, "is to be cancelled")
	}
	return nil
}
