package lifecycle

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

func kindOfStep(sleep bool) string {
	if sleep {
		return "sleep"
	}
	return "step"
}

// NextStep returns the record of the next step or sleep of a function, or nil if no attempt has reached it yet. The parameter known has the
// records of all attempts in order. The parameter done is the number of these records that this attempt has passed already. The error
// matches ErrStep if the name is invalid or was used before, if there are too many steps, or if an earlier attempt had another step at this
// position.
func NextStep(known []jobs.Step, done int, name string, sleep bool) (*jobs.Step, error) {
	if name == "" || len(name) > jobs.MaxText || !utf8.ValidString(name) || containsControl(name) {
		return nil, fmt.Errorf("%w: invalid name %q; use 1 to %d bytes of UTF-8 without control characters", jobs.ErrStep, name,
			jobs.MaxText)
	}
	for i := range done {
		if known[i].Name == name {
			return nil, fmt.Errorf("%w: %s %q comes twice: each needs a name of its own", jobs.ErrStep, kindOfStep(known[i].Slept()), name)
		}
	}
	if done == len(known) {
		if done >= taskspec.MaxSteps {
			return nil, fmt.Errorf("%w: %q is one too many: at most %d in a task", jobs.ErrStep, name, taskspec.MaxSteps)
		}
		return nil, nil
	}
	if was := known[done]; was.Name != name || was.Slept() != sleep {
		return nil, fmt.Errorf("%w: number %d is %s %q, and was %s %q in an earlier attempt: while a task is under way, steps are not "+
			"renamed, removed or put in another order; new ones come behind those that were done", jobs.ErrStep, done+1, kindOfStep(sleep),
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
