package jobs

import (
	"errors"
	"fmt"
	"testing"

	"example.com/runner/test/testkit"
)

func TestErrorMatchesItsKindAndItsCause(t *testing.T) {
	cause := errors.New("cause")
	busy := fmt.Errorf("open: %w", &Error{Kind: ErrBusy, What: "busy", Why: []string{"a", "b"}, Err: cause})
	full := error(&Error{Kind: ErrFull, What: "full"})
	testkit.ErrorIs(t, busy, ErrBusy)
	testkit.ErrorIs(t, busy, cause)
	testkit.ErrorIs(t, full, ErrFull)
	if errors.Is(busy, ErrFull) {
		t.Errorf("got error %v that is %v, want another kind", busy, ErrFull)
	}
	testkit.Equal(t, "text with reasons", busy.Error(), "open: busy: a; b")
	testkit.Equal(t, "text without reasons", full.Error(), "full")
}
