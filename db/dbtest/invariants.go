package dbtest

import (
	"fmt"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit/transitions"
)

// violations returns the changes of a history that violate an invariant.
func violations(history []change) []string {
	var found []string
	claimed := map[[2]int64]bool{}
	for i, c := range history {
		wrong := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("change %d: %s: %+v", i, fmt.Sprintf(format, args...), c))
		}
		moved := c.oldState != c.state
		revoked := !moved && c.state == jobs.Running && c.lease.Int64 == 0 && c.oldLease.Int64 != 0
		if moved && !transitions.Allowed(c.oldState, c.state) {
			wrong("I8: no such move")
		}

		// A new owner always comes with a change of the state, because a task
		// becomes pending before another worker claims it. A negative number is
		// a reservation for an owner.
		reserves := c.state != jobs.Running && !c.state.Finished() && c.owner.Int64 < 0
		if c.oldOwner != c.owner && !(moved && c.state == jobs.Running) && !reserves {
			wrong("I3: another owner without a claim")
		}

		switch grown := c.generation - c.oldGeneration; {
		case moved && grown != 1:
			wrong("I4: the state changed, the generation grew by %d", grown)
		case revoked && grown != 1:
			wrong("a claim was revoked, the generation grew by %d", grown)
		case !moved && !revoked && grown != 0 && !(c.state == jobs.Blocked && c.generation == 1): // plain SQL inserts generation 0
			wrong("the generation grew by %d for nothing", grown)
		}

		if moved && c.state == jobs.Running {
			key := [2]int64{c.id, c.generation}
			if claimed[key] {
				wrong("I4: claimed twice")
			}
			claimed[key] = true
		}
		if c.maxAttempts.Valid && int64(c.attempt) > c.maxAttempts.Int64 || c.losses > c.maxLosses+1 {
			wrong("I5: too many attempts or losses")
		}
		if !c.state.Finished() && c.losses > c.maxLosses {
			wrong("I5: goes on after its last loss")
		}
		if c.lease.Valid != (c.state == jobs.Running) {
			wrong("a lease is there, or is not")
		}
		if !moved && c.state == jobs.Running && !revoked && c.lease.Int64 < c.oldLease.Int64 {
			wrong("I7: a lease was shortened")
		}
	}

	return found
}
