package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
)

func TestClockThatIsMinutesOffIsRejected(t *testing.T) {
	sent := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	received := sent.Add(2 * time.Second) // the server answers after 2 s, as on a slow network
	for offset, want := range map[time.Duration]string{
		-10 * time.Minute: "10m0s ahead of the server's", 10 * time.Minute: "9m58s behind the server's",
		0: "", time.Second: "", -time.Minute: "", time.Minute + 2*time.Second: "", -time.Minute - time.Millisecond: "1m0s ahead of",
	} {
		err := checkSkew(skew(sent.Add(offset), sent, received), "postgres://h/d")
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("a server with offset %v: got error %v, want one with %q (none if empty)", offset, err, want)
		}
	}
}
