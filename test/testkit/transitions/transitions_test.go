package transitions

import (
	"testing"

	"example.com/runner/jobs"
)

func TestTransitionsAreUniqueAndChangeState(t *testing.T) {
	seen := map[move]bool{}
	for _, m := range moves {
		if seen[m] || m.From == m.To || m.By == "" {
			t.Errorf("got transition from %q to %q by %q, listed before: %v; want two states and an action, listed once",
				m.From, m.To, m.By, seen[m])
		}
		seen[m] = true
	}
}

func TestOnlyRetryLeavesFinishedState(t *testing.T) {
	for _, m := range moves {
		if m.From.Finished() != (m.By == "retry") {
			t.Errorf("got transition from %s to %s by %s, want retry for a finished state and another action for others", m.From,
				m.To, m.By)
		}
	}
}

func TestOnlyClaimLeadsToRunningAndOnlyRunningTasksCompleteOrFail(t *testing.T) {
	for _, m := range moves {
		if (m.To == jobs.Running) != (m.By == "claim") || m.To == jobs.Running && m.From != jobs.Pending {
			t.Errorf("got transition from %s to %s by %s, want claim to lead to running, and only from pending", m.From, m.To, m.By)
		}
		if (m.To == jobs.Completed || m.To == jobs.Failed) && m.From != jobs.Running {
			t.Errorf("got transition from %s to %s, want only running tasks to complete or fail", m.From, m.To)
		}
	}
}
