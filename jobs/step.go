package jobs

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"
)

// Step is the record of a part of a function that need not be done again: a step that has ended, or a sleep.
type Step struct {
	Name         string
	GenerationID int64           // of the claim that did it
	Value        json.RawMessage // what it returned; nil for a sleep
	WakeAt       time.Time       // of a sleep: when it ends; zero for a step
	At           time.Time       // when the step ended, or when the sleep began
}

// Slept says whether it is a sleep.
func (s Step) Slept() bool { return !s.WakeAt.IsZero() }

func kindOfStep(sleep bool) string {
	if sleep {
		return "sleep"
	}
	return "step"
}

// NextStep returns what is known of the step, or the sleep, that a function comes to when it has come to those of done in this attempt,
// and known are those of all attempts: nil if it is new. It returns ErrStep when the step cannot be: its name is none or was used, there
// are too many, or an earlier attempt came to another one here.
func NextStep(known []Step, done int, name string, sleep bool) (*Step, error) {
	if name == "" || len(name) > MaxText || !utf8.ValidString(name) || containsControl(name) {
		return nil, fmt.Errorf("%w: %q is no name: 1 to %d bytes of UTF-8 without control characters", ErrStep, name, MaxText)
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
			"renamed, removed or put in another order; new ones come behind those that were done", ErrStep, done+1, kindOfStep(sleep), name, kindOfStep(was.Slept()), was.Name)
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
