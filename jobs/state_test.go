package jobs

import (
	"os"
	"slices"
	"testing"

	"example.com/runner/internal/testkit"
)

// transitionTable lists, for each state, the states that a task can change to. It is written by hand, independently of moves.
var transitionTable = map[State][]State{
	Scheduled: {Pending, Blocked, Cancelled},
	Pending:   {Running, Blocked, Cancelled, Scheduled},
	Blocked:   {Pending, Scheduled, Cancelled},
	Running:   {Completed, Failed, Retrying, Cancelled, Pending, Scheduled},
	Retrying:  {Pending, Cancelled},
	Completed: {Pending, Scheduled, Blocked},
	Failed:    {Pending, Scheduled, Blocked},
	Cancelled: {Pending, Scheduled, Blocked},
}

func TestCanMoveMatchesTheTransitionTable(t *testing.T) {
	for _, from := range States() {
		for _, to := range States() {
			if got, want := CanMove(from, to), slices.Contains(transitionTable[from], to); got != want {
				t.Errorf("CanMove(%s, %s): got %v, want %v", from, to, got, want)
			}
		}
	}
}

func TestTransitionsAreUniqueAndChangeTheState(t *testing.T) {
	seen := map[[2]State]bool{}
	for _, m := range moves {
		key := [2]State{m.From, m.To}
		if seen[key] || m.From == m.To || m.By == "" {
			t.Errorf("got transition from %q to %q by %q, listed before: %v; want two states and an action, listed once",
				m.From, m.To, m.By, seen[key])
		}
		seen[key] = true
	}
}

func TestOnlyRetryLeavesAFinishedState(t *testing.T) {
	for _, m := range moves {
		if m.From.Finished() != (m.By == "retry") {
			t.Errorf("got transition from %s to %s by %s, want retry for a finished state and another action for others", m.From, m.To, m.By)
		}
	}
}

func TestOnlyClaimLeadsToRunningAndOnlyRunningTasksCompleteOrFail(t *testing.T) {
	for _, m := range moves {
		if (m.To == Running) != (m.By == "claim") || m.To == Running && m.From != Pending {
			t.Errorf("got transition from %s to %s by %s, want claim to lead to running, and only from pending", m.From, m.To, m.By)
		}
		if (m.To == Completed || m.To == Failed) && m.From != Running {
			t.Errorf("got transition from %s to %s, want only running tasks to complete or fail", m.From, m.To)
		}
	}
}

func TestEveryStateIsUnfinishedOrFinished(t *testing.T) {
	testkit.Equal(t, "unfinished and finished states", slices.Concat(Unfinished(), Finished()), States())
	for _, s := range States() {
		if got, want := s.Finished(), slices.Contains(Finished(), s); got != want {
			t.Errorf("%s is finished: got %v, want %v", s, got, want)
		}
	}
	for _, s := range []State{"", Snoozed} {
		if s.Finished() || slices.Contains(States(), s) {
			t.Errorf("%q: got a state of a task, want no state of a task", s)
		}
	}
}

func TestStatesReturnsACopy(t *testing.T) {
	for _, list := range []func() []State{States, Unfinished, Finished} {
		list()[0] = "changed"
		if list()[0] == "changed" {
			t.Error("got a list that a caller has changed, want a copy for each call")
		}
	}
}

func TestPackageDocNamesEveryState(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range States() {
		testkit.Contains(t, string(doc), string(s))
	}
	testkit.Contains(t, string(doc), "claim", "finish", "due", "cancel", "retry", "snooze")
}
