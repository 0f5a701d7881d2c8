package postgres

import (
	"fmt"
	"time"

	"example.com/runner/jobs"
)

// Times in the tables are those of the hosts that write them, and a task is due by the clock of the host that looks. On a server there
// are several hosts, so their clocks have to agree with the server's: a few seconds make a task early or late by so much, and minutes are
// refused. Leases compare no two clocks.

// skewMost is how far the clock of a host may be from the server's.
const skewMost = time.Minute

// measure returns how far the clock of this host is ahead of the one that ask reads.
func measure(ask func() (time.Time, error)) (time.Duration, error) {
	asked := time.Now()
	at, err := ask()
	return skew(at, asked, time.Now()), err
}

// skew returns how far the clock of this host is ahead of the server's, which was at during a question from asked to answered; what the
// question took is in doubt, and in the host's favour.
func skew(at, asked, answered time.Time) time.Duration {
	switch {
	case at.Before(asked):
		return asked.Sub(at)
	case at.After(answered):
		return answered.Sub(at)
	}
	return 0
}

// skewed is the error of a clock that is too far from the server's; nil: it is not.
func skewed(by time.Duration, name string) error {
	if by.Abs() <= skewMost {
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
