package present

import (
	"cmp"
	"fmt"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
)

// ServerProblems returns the sessions on a server that need attention. For a database in a file h is nil, and the result is empty.
func ServerProblems(h *admin.ServerHealth, now time.Time) []Problem {
	return worded(admin.ServerProblems(h, now), now)
}

// sessionProblem describes a problem that a session causes.
func sessionProblem(code string, s admin.Session, now time.Time) string {
	name := fmt.Sprintf("session %d (%s, user %s", s.PID, cmp.Or(s.Application, "no application name"), s.User)
	if s.Client != "" {
		name += ", host " + s.Client
	}
	name += ")"
	if s.Begun.IsZero() {
		return fmt.Sprintf("%s holds a snapshot that is %d transactions old; VACUUM removes no row that died since then", name, s.Behind)
	}
	age := humanize.Age(now.Sub(s.Begun))
	if last := humanize.Age(now.Sub(s.QueryBegun)); !s.QueryBegun.IsZero() && last != age {
		age += " (last query " + last + " ago)"
	}
	switch code {
	case "lock_held":
		name += " has held the write lock for " + age + ", and other writers wait"
	case "idle_in_transaction":
		name += " is idle in a transaction that has been open for " + age
	default:
		name += " has held a snapshot for " + age
	}
	if code != "lock_held" && s.Snapshot {
		name += "; VACUUM removes no row that died since then"
	}
	return name
}
