package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/jobs"
)

// Each host writes times by its own clock, and compares the due time of a task with its own clock. Several hosts can use one server, so
// their clocks have to agree with the server's clock. If the clocks differ by some seconds, a task starts some seconds early or late. A
// difference of more than maxSkew is an error. Leases do not depend on this difference, because no code for leases compares two clocks.

// maxSkew is the largest accepted difference between the clock of a host and the server's clock.
const maxSkew = time.Minute

// readServer reads the version and the clock of the server, and whether the tables exist.
func (s *Server) readServer(ctx context.Context, conn *sqlx.Conn) (some bool, err error) {
	var ms int64
	sent := time.Now()
	err = conn.QueryRowxContext(ctx, s.sql.Text(serverVersion), s.Schema+".runner_schema").Scan(&s.version, &some, &ms)
	s.skew = skew(time.UnixMilli(ms), sent, time.Now())
	return some, err
}

// skew returns the time by which the clock of this host is ahead of the server's clock. The parameter "at" is a time of the server's clock.
// The server read its clock at some moment between the times "sent" and "answered" of this host's clock. The exact moment is unknown, so
// skew returns the smallest possible difference.
func skew(at, sent, answered time.Time) time.Duration {
	switch {
	case at.Before(sent):
		return sent.Sub(at)
	case at.After(answered):
		return answered.Sub(at)
	}
	return 0
}

// checkSkew returns an error if the clock differs from the server's clock by more than maxSkew.
func checkSkew(by time.Duration, name string) error {
	if by.Abs() <= maxSkew {
		return nil
	}
	side := "ahead of"
	if by < 0 {
		side = "behind"
	}
	return &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("the clock of this host is %v %s the server's",
		by.Abs().Round(time.Second), side),
		Why: []string{name, "tasks would start at the wrong time; nothing was changed"}, Hint: "timedatectl status"}
}
