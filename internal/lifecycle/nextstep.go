package lifecycle

import (
	"fmt"
	"strings"
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

// Steps has the steps and sleeps that the attempts of a task have stored so far, by name.
type Steps struct {
	generation int64 // generation of the current attempt
	stored     map[string]jobs.Step
	passed     map[string]bool // names of the steps and sleeps that the current attempt has finished or skipped
}

// NewSteps returns the stored steps of a task for the attempt with this generation. The attempt reads the results of earlier attempts. It
// cannot use the name of a step that it has stored itself: each step in an attempt needs a name of its own.
func NewSteps(stored []jobs.Step, generation int64) *Steps {
	s := &Steps{generation: generation, stored: make(map[string]jobs.Step, len(stored)), passed: map[string]bool{}}
	s.Reload(stored)
	return s
}

// Reload replaces the stored steps.
func (s *Steps) Reload(stored []jobs.Step) {
	clear(s.stored)
	for _, step := range stored {
		s.stored[step.Name] = step
	}
}

// Len returns the number of stored steps.
func (s *Steps) Len() int { return len(s.stored) }

// Stored returns the stored step or sleep with this name. It returns false if no attempt has stored it yet. The errors match ErrStep. There
// is an error if the name is invalid, if this attempt has already used the name, or if the task would have too many steps. There is also an
// error if the name belongs to a sleep and the caller wants a step, or if it belongs to a step and the caller wants a sleep.
func (s *Steps) Stored(name string, sleep bool) (jobs.Step, bool, error) {
	step, ok := s.stored[name]
	var err error
	switch {
	case name == "" || len(name) > taskspec.MaxText || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		err = fmt.Errorf("%w: invalid name %q; use 1 to %d bytes of UTF-8 without control characters", jobs.ErrStep, name, taskspec.MaxText)
	case s.passed[name] || ok && step.GenerationID == s.generation:
		err = fmt.Errorf("%w: %s %q comes twice: each needs a name of its own", jobs.ErrStep, kindOfStep(step.Slept()), name)
	case ok && step.Slept() != sleep:
		err = fmt.Errorf("%w: %q is a %s, and was a %s in an earlier attempt: use another name", jobs.ErrStep, name, kindOfStep(sleep),
			kindOfStep(step.Slept()))
	case !ok && len(s.stored) >= taskspec.MaxSteps:
		err = fmt.Errorf("%w: %q is one too many: at most %d in a task", jobs.ErrStep, name, taskspec.MaxSteps)
	}
	return step, ok, err
}

// Store adds a step that the current attempt has just stored in the database.
func (s *Steps) Store(step jobs.Step) { s.stored[step.Name] = step }

// Pass records that the current attempt has finished or skipped the step or sleep with this name. The attempt cannot use the name again.
func (s *Steps) Pass(name string) { s.passed[name] = true }
