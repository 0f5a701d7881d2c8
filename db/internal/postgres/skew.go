package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/jobs"
)

// Each host writes times, and compares the due time of a task, by its own
// clock. Several hosts can use one server, so their clocks have to agree with
// the server's: if they differ by some seconds, a task starts some seconds
// early or late. Leases don't depend on that, because no code for leases
// compares two clocks.

// maxSkew is the largest accepted difference from the server's clock.
const maxSkew = time.Minute

// readServer reads the server's version and clock, and whether the tables
// exist.
func (s *Server) readServer(ctx context.Context, conn *sqlx.Conn) (some bool, err error) {
	var ms int64
	sent := time.Now()
	err = conn.QueryRowxContext(ctx, s.sql.Text(serverVersion), s.Schema+".runner_schema").Scan(&s.version, &some, &ms)
	s.skew = skew(time.UnixMilli(ms), sent, time.Now())
	return some, err
}

// skew returns how far the clock of this host is ahead of the server's, which
// read its clock (at) at some moment between sent and answered. Of the possible
// differences it returns the smallest.
func skew(at, sent, answered time.Time) time.Duration {
	switch {
	case at.Before(sent):
		return sent.Sub(at)
	case at.After(answered):
		return answered.Sub(at)
	}
	return 0
}

func checkSkew(by time.Duration, name string) error {
	if by.Abs() <= maxSkew {
		return nil
	}

	side := "ahead of"
	if by < 0 {
		side = "behind"
	}
	return &jobs.Error{Kind: jobs.ErrInvalid, Hint: "timedatectl status",
		What: fmt.Sprintf("the clock of this host is %v %s the server's", by.Abs().Round(time.Second), side),
		Why:  []string{name, "tasks would start at the wrong time; nothing was changed"}}
}
