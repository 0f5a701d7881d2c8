package jobs

import "testing"

func TestArgumentHoldsNoNUL(t *testing.T) {
	if s := (Command{Argv: []string{"a\x00"}}).With(); s.Err == nil {
		t.Errorf("argument with NUL: got args %s, want an error", s.Args)
	}
}
