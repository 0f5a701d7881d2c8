package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// letter is the input of a job. Older versions of the program had one address
// in place of a list.
type letter struct{ To []string }

func (l *letter) UnmarshalJSON(data []byte) error {
	var old struct{ To string }
	if json.Unmarshal(data, &old) == nil {
		l.To = []string{old.To}
		return nil
	}
	type plain letter // has no UnmarshalJSON
	return json.Unmarshal(data, (*plain)(l))
}

var (
	oldLetter = jobs.Define[struct{ To string }]("letter")
	newLetter = jobs.Define[letter]("letter")
)

// TestTaskWithNewArgumentsWaitsForNewProgram runs a task of the new version of
// a program with the old one, and then with the new one.
func TestTaskWithNewArgumentsWaitsForNewProgram(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var got []string
		version := oldLetter.Handler(func(context.Context, struct{ To string }) error { return nil })
		r.Register(jobs.Handler{Job: "letter", Run: func(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
			return version.Run(ctx, task)
		}})
		task := runnerkit.Enqueue(t, r, newLetter.With(letter{To: []string{"ann", "bob"}}))
		runnertest.RunDue(t, r)
		failed := runnerkit.Get(t, r, task.ID)
		testkit.Equal(t, "state", failed.State, jobs.Retrying)
		testkit.Equal(t, "reason", failed.Reason, jobs.ReasonArgs)
		testkit.Contains(t, failed.Error, "args of letter: json: ")

		version = newLetter.Handler(func(_ context.Context, l letter) error { got = append(got, l.To...); return nil })
		runnertest.Advance(t, time.Minute)
		runnertest.RunDue(t, r)
		testkit.Equal(t, "addresses", got, []string{"ann", "bob"})
		testkit.Equal(t, "reason after a success", runnerkit.Get(t, r, task.ID).Reason, "")
	})
}

// picky is an input whose UnmarshalJSON accepts nothing, now and later.
type picky struct{}

func (*picky) UnmarshalJSON([]byte) error { return jobs.Fail(errors.New("no such version")) }

func TestUnmarshalJSONFailsTaskAtOnce(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(jobs.Define[picky]("picky").Handler(func(context.Context, picky) error { return nil }))
		task := runnerkit.Enqueue(t, r, jobs.Define[int]("picky").With(1))
		runnertest.RunDue(t, r)
		got := runnerkit.Get(t, r, task.ID)
		testkit.Equal(t, "state", got.State, jobs.Failed)
		testkit.Equal(t, "reason", got.Reason, jobs.ReasonArgs)
		testkit.Equal(t, "error", got.Error, "args of picky: no such version")
	})
}

// The arguments of a task of an older version are decoded by the UnmarshalJSON
// of the new type.
func Example_changedArguments() {
	old := oldLetter.With(struct{ To string }{"ann@example.com"})
	l, err := newLetter.Args(jobs.Task{Job: "letter", Args: old.Args})
	fmt.Println(l.To, err)
	// Output: [ann@example.com] <nil>
}
