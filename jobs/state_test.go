package jobs

import (
	"os"
	"slices"
	"testing"

	"example.com/runner/test/testkit"
)

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

func TestStatesReturnsCopy(t *testing.T) {
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
