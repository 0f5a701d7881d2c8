package jobs

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Step is the record of a step that has ended, or of a sleep. A later attempt of the task does not run the step again.
type Step struct {
	Name         string
	GenerationID int64           // generation of the claim whose attempt ran the step
	Value        json.RawMessage // return value; nil for a sleep
	WakeAt       time.Time       // end of a sleep; zero for a step
	At           time.Time       // when the step ended, or when the sleep began
}

// Slept reports whether the record is of a sleep.
func (s Step) Slept() bool { return !s.WakeAt.IsZero() }

func kindOfStep(sleep bool) string {
	if sleep {
		return "sleep"
	}
	return "step"
}

// NextStep returns the record of the next step or sleep of a function, or nil if no attempt has reached it yet. known are the
// records of all attempts in order, and this attempt has passed the first done of them. The error matches ErrStep if the name is
// invalid or was used before, if there are too many steps, or if an earlier attempt had another step at this position.
func NextStep(known []Step, done int, name string, sleep bool) (*Step, error) {
	if name == "" || len(name) > MaxText || !utf8.ValidString(name) || containsControl(name) {
		return nil, fmt.Errorf("%w: invalid name %q; use 1 to %d bytes of UTF-8 without control characters", ErrStep, name, MaxText)
	}
	for i := range done {
		if known[i].Name == name {
			return nil, fmt.Errorf("%w: %s %q comes twice: each needs a name of its own", ErrStep, kindOfStep(known[i].Slept()), name)
		}
	}
	if done == len(known) {
		if done >= MaxSteps {
			return nil, fmt.Errorf("%w: %q is one too many: at most %d in a task", ErrStep, name, MaxSteps)
		}
		return nil, nil
	}
	if was := known[done]; was.Name != name || was.Slept() != sleep {
		return nil, fmt.Errorf("%w: number %d is %s %q, and was %s %q in an earlier attempt: while a task is under way, steps are not "+
			"renamed, removed or put in another order; new ones come behind those that were done", ErrStep, done+1, kindOfStep(sleep),
			name, kindOfStep(was.Slept()), was.Name)
	}
	return &known[done], nil
}

func containsControl(text string) bool {
	for _, r := range text {
		if unicode.IsControl(r) {
			return true
		}
	}
	return false
}
