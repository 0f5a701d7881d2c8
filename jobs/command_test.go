package jobs

import (
	"testing"

	"example.com/runner/jobs/command"
)

func TestArgumentHoldsNoNUL(t *testing.T) {
	if s := Command(command.Command{Argv: []string{"a\x00"}}); s.Err == nil {
		t.Errorf("argument with NUL: got args %s, want an error", s.Args)
	}
}
