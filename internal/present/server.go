package present

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
)

// ServerProblems returns the conditions on a server that need attention. For a database in a file h is nil, and the result is empty.
func ServerProblems(h *admin.ServerHealth, now time.Time) []Problem {
	return worded(admin.ServerProblems(h, now), now)
}

// serverProblem describes a problem on a server, and returns a command that helps.
func serverProblem(p admin.Problem, now time.Time) (message, try string) {
	switch o := p.Object.(type) {
	case admin.Session:
		return sessionProblem(p.Code, o, now), sql("SELECT pg_terminate_backend(%d)", o.PID)
	case admin.Prepared:
		return fmt.Sprintf("the prepared transaction %s of user %s has been open for %s; VACUUM removes no row that died since then",
			o.Name, o.Owner, humanize.Age(now.Sub(o.At))), sql("ROLLBACK PREPARED %s", quoted(o.Name))
	case admin.Slot:
		if o.Active {
			return fmt.Sprintf("the standby of replication slot %s holds a snapshot that is %d transactions old; "+
					"VACUUM removes no row that died since then", o.Name, o.Behind),
				"on the standby: end long queries, or set hot_standby_feedback = off"
		}
		message = fmt.Sprintf("no standby uses replication slot %s; the server keeps %s of its log for it", o.Name, humanize.Size(o.Bytes))
		if o.Behind > 0 {
			message += fmt.Sprintf(", and a snapshot that is %d transactions old", o.Behind)
		}
		return message, sql("SELECT pg_drop_replication_slot(%s)", quoted(o.Name))
	case admin.TableHealth:
		vacuumed := "it was never vacuumed"
		if !o.Vacuumed.IsZero() {
			vacuumed = "it was vacuumed " + humanize.Age(now.Sub(o.Vacuumed)) + " ago"
		}
		return fmt.Sprintf("table %s has %d dead rows beside %d rows; %s", o.Name, o.Dead, o.Live, vacuumed), sql("VACUUM (VERBOSE) %s",
			o.Name)
	case admin.Standby:
		return fmt.Sprintf("standby %s is %s behind, and has not applied %s of the log", o.Name, humanize.Age(o.Lag),
				humanize.Size(o.Bytes)),
			sql("SELECT * FROM pg_stat_replication")
	case admin.Replica:
		if !o.Receives {
			return "this server is a standby without a connection to its primary server; it shows old data",
				sql("SELECT * FROM pg_stat_wal_receiver")
		}
		applied := "has applied no commit since its start"
		if !o.Applied.IsZero() {
			applied = "applied the last commit " + humanize.Age(now.Sub(o.Applied)) + " ago"
		}
		return fmt.Sprintf("this server is a standby, and %s; %s of the log wait", applied, humanize.Size(o.Bytes)),
			sql("SELECT * FROM pg_stat_wal_receiver")
	case string:
		return "commits wait for a synchronous standby, and none is connected: synchronous_standby_names is " + o,
			"start the standby; to work without one: " + sql("ALTER SYSTEM RESET synchronous_standby_names") + reload
	case admin.Rights:
		return "role " + o.User + " lacks rights: " + strings.Join(o.Missing, ", "),
			sql("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s", o.Schema, shellQuoted(admin.Identifier(o.User)))
	}
	return p.Code, ""
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

// sql returns a shell command that runs an SQL statement on the server.
func sql(format string, args ...any) string {
	return `psql -c "` + fmt.Sprintf(format, args...) + `"`
}

// reload is the end of a shell command. It makes the server read its settings again.
const reload = ` -c "SELECT pg_reload_conf()"`

// SyncCommand returns the shell command that makes the replication synchronous.
func SyncCommand() string {
	return sql("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'") + reload
}

// quoted returns a text as an SQL literal, for use between double quotes in a shell command.
func quoted(text string) string {
	return "'" + shellQuoted(strings.ReplaceAll(text, "'", "''")) + "'"
}

// shellQuoted escapes a text for use between double quotes in a shell command.
func shellQuoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text)
}
