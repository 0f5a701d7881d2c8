package jobs

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// table is the same knowledge as moves, written once more by hand from the contract of the command line: a row per state, and in
// it the states that it leaves to.
var table = map[State][]State{
	Scheduled: {Pending, Blocked, Cancelled},
	Pending:   {Running, Blocked, Cancelled, Scheduled},
	Blocked:   {Pending, Scheduled, Cancelled},
	Running:   {Completed, Failed, Retrying, Cancelled, Pending, Scheduled},
	Retrying:  {Pending, Cancelled},
	Completed: {Pending, Scheduled, Blocked},
	Failed:    {Pending, Scheduled, Blocked},
	Cancelled: {Pending, Scheduled, Blocked},
}

func TestMovesAreThoseOfTheContract(t *testing.T) {
	for _, from := range States() {
		for _, to := range States() {
			if got, want := CanMove(from, to), slices.Contains(table[from], to); got != want {
				t.Errorf("CanMove(%s, %s) = %v, want %v", from, to, got, want)
			}
		}
	}
}

func TestNoMoveIsListedTwiceOrStaysWhereItIs(t *testing.T) {
	seen := map[[2]State]bool{}
	for _, m := range moves {
		key := [2]State{m.From, m.To}
		if seen[key] || m.From == m.To || m.By == "" {
			t.Errorf(`got %+v; want not (seen[key]), From != To, By != ""`, m)
		}
		seen[key] = true
	}
}

func TestFinishedStatesAreLeftByRetryOnly(t *testing.T) {
	for _, m := range moves {
		if m.From.Finished() != (m.By == "retry") {
			t.Errorf(`got %+v, want From.Finished() = (By == "retry")`, m)
		}
	}
}

func TestOnlyAClaimLeadsToRunningAndOnlyRunningTasksFinishWell(t *testing.T) {
	for _, m := range moves {
		if (m.To == Running) != (m.By == "claim") || m.To == Running && m.From != Pending {
			t.Errorf(`got %+v; want (To == Running) = (By == "claim"), not (To == Running && From != Pending)`, m)
		}
		if (m.To == Completed || m.To == Failed) && m.From != Running {
			t.Errorf("got %+v, want not ((To == Completed || To == Failed) && From != Running)", m)
		}
	}
}

func TestStatesAreUnfinishedOrFinished(t *testing.T) {
	if got := slices.Concat(Unfinished(), Finished()); !slices.Equal(got, States()) {
		t.Errorf("%v and %v are not %v", Unfinished(), Finished(), States())
	}
	for _, s := range States() {
		if s.Finished() != slices.Contains(Finished(), s) {
			t.Errorf("%s.Finished() = %v", s, s.Finished())
		}
	}
	if State("").Finished() || Snoozed.Finished() || slices.Contains(States(), Snoozed) {
		t.Error("snoozed, or no state at all, counts as a state of a task")
	}
}

func TestStatesAreCopies(t *testing.T) {
	for _, list := range []func() []State{States, Unfinished, Finished} {
		list()[0] = "changed"
		if list()[0] == "changed" {
			t.Error("a caller can change the states")
		}
	}
}

func TestPackageDocNamesEveryState(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range States() {
		if !strings.Contains(string(doc), string(s)) {
			t.Errorf("doc.go does not tell of %s", s)
		}
	}
	for _, by := range []string{"claim", "finish", "due", "cancel", "retry", "snooze"} {
		if !strings.Contains(string(doc), by) {
			t.Errorf("doc.go does not tell of %s", by)
		}
	}
}
