package taskspec

import (
	"slices"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestEveryStateIsUnfinishedOrFinished(t *testing.T) {
	testkit.Equal(t, "unfinished and finished states", slices.Concat(Unfinished(), Finished()), AllStates())
	for _, s := range AllStates() {
		if got, want := s.Finished(), slices.Contains(Finished(), s); got != want {
			t.Errorf("%s is finished: got %v, want %v", s, got, want)
		}
	}
	for _, s := range []jobs.State{"", Snoozed} {
		if s.Finished() || slices.Contains(AllStates(), s) {
			t.Errorf("%q: got a state of a task, want no state of a task", s)
		}
	}
}

func TestListsOfStatesAreCopies(t *testing.T) {
	for _, list := range []func() []jobs.State{AllStates, Unfinished, Finished} {
		list()[0] = "changed"
		if list()[0] == "changed" {
			t.Error("got a list that a caller has changed, want a copy for each call")
		}
	}
}
