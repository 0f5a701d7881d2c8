package jobs

import "fmt"

// Owned returns nil if t is running with this generation and nobody has asked to cancel it. Otherwise it returns a *Problem of kind
// ErrCancelled or ErrLost, and the attempt of this generation must stop.
func (t Task) Owned(generation int64) error {
	problem := func(kind error, format string, args ...any) error {
		return &Error{Kind: kind, What: fmt.Sprintf("task %d ", t.ID) + fmt.Sprintf(format, args...)}
	}
	switch {
	case t.GenerationID < generation:
		return problem(ErrLost, "never had generation %d, only %d", generation, t.GenerationID)
	case t.State == Running && t.GenerationID > generation:
		return problem(ErrLost, "is owned by a later attempt (generation %d, this is %d)", t.GenerationID, generation)
	case t.State != Running:
		return problem(ErrLost, "is %s, no longer running (generation %d, this is %d)", t.State, t.GenerationID, generation)
	case !t.CancelRequestedAt.IsZero():
		return problem(ErrCancelled, "is to be cancelled")
	}
	return nil
}
