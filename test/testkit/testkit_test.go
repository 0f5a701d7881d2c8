package testkit

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// recorder collects the failures that a helper reports, so that the test itself
// does not fail.
type recorder struct {
	testing.TB
	messages []string
}

func (r *recorder) Helper()      {}
func (r *recorder) Failed() bool { return len(r.messages) > 0 }
func (r *recorder) Errorf(format string, args ...any) {
	r.messages = append(r.messages, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); panic(r) }

func messages(t *testing.T, check func(t testing.TB)) string {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != r {
				panic(p)
			}
		}()
		check(r)
	}()
	return strings.Join(r.messages, "\n")
}

func TestFailedCheckSaysGotAndWant(t *testing.T) {
	type point struct {
		X, Y int
		note string
	}
	base := errors.New("base")
	for _, c := range []struct {
		name  string
		check func(t testing.TB)
		want  string
	}{
		{"equal values", func(t testing.TB) { Equal(t, "n", 1, 1) }, ""},
		{"different values", func(t testing.TB) { Equal(t, "n", 1, 2) }, "n: got 1, want 2"},
		{"one field", func(t testing.TB) { Equal(t, "p", point{X: 1}, point{X: 1, Y: 2}) }, "p: Y: got 0, want 2"},
		{"a private field", func(t testing.TB) { Equal(t, "p", point{note: "a"}, point{}) },
			"p: got {X:0 Y:0 note:a}, want {X:0 Y:0 note:}"},
		{"an error", func(t testing.TB) { NoError(t, base) }, "got error base, want none"},
		{"a wrapped error", func(t testing.TB) { ErrorIs(t, fmt.Errorf("open: %w", base), base, "open") }, ""},
		{"no error", func(t testing.TB) { ErrorIs(t, nil, base) }, "got error <nil>, want one that is base"},
		{"another text", func(t testing.TB) { ErrorIs(t, base, base, "open") }, `got error "base", want one with "open"`},
		{"no error with a text", func(t testing.TB) { ErrorContains(t, nil, "open") }, `got no error, want one with ["open"]`},
		{"an error with a text", func(t testing.TB) { ErrorContains(t, base, "bas", "open") }, `got error "base", want one with "open"`},
		{"enough elements", func(t testing.TB) { Len(t, "ids", []int{7}, 1) }, ""},
		{"too few elements", func(t testing.TB) { Len(t, "ids", []int{7}, 2) }, "ids: got 1, want 2: [7]"},
		{"in a range", func(t testing.TB) { Between(t, "n", 3, 1, 3) }, ""},
		{"out of a range", func(t testing.TB) { Between(t, "n", 4, 1, 3) }, "n: got 4, want 1 to 3"},
		{"a part that is missing", func(t testing.TB) { Contains(t, "ab", "a", "c") }, "got a text without \"c\":\nab"},
		{"a part too many", func(t testing.TB) { ContainsNone(t, "ab", "a", "c") }, "got a text with \"a\", want none:\nab"},
		{"too late", func(t testing.TB) { Within(t, time.Millisecond, "it", func() bool { return false }) }, "it: not within 1ms"},
		{"in time", func(t testing.TB) { Eventually(t, "it", func() bool { return true }) }, ""},
	} {
		if got := messages(t, c.check); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
