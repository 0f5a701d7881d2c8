package web

import (
	"testing"
	"time"
)

// TestClearedCacheForgetsValueThatIsBeingRead clears a cache and reads it again
// while the first request still reads its value.
func TestClearedCacheForgetsValueThatIsBeingRead(t *testing.T) {
	var c cache[string]
	get := func(want string, read func() string) {
		t.Helper()
		got, err := c.get("key", func() (string, time.Duration, error) { return read(), time.Hour, nil })
		if got != want || err != nil {
			t.Errorf("got %q, error %v; want %q", got, err, want)
		}
	}

	get("old", func() string {
		c.clear()
		get("new", func() string { return "new" })
		return "old"
	})
	get("new", func() string { return "another" })
}
