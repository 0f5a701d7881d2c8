package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
)

func TestAClockThatIsMinutesOffIsRefused(t *testing.T) {
	asked := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	answered := asked.Add(2 * time.Second) // as on a slow network
	for at, want := range map[time.Duration]string{
		-10 * time.Minute: "10m0s ahead of the server's", 10 * time.Minute: "9m58s behind the server's",
		0: "", time.Second: "", -time.Minute: "", time.Minute + 2*time.Second: "", -time.Minute - time.Millisecond: "1m0s ahead of",
	} {
		err := skewed(skew(asked.Add(at), asked, answered), "postgres://h/d")
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("a server at %v: %v, want %q", at, err, want)
		}
	}
}
