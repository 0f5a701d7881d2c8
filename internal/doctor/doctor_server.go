package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
)

// notifyTimeout is how long doctor waits for a notification of the server.
const notifyTimeout = 5 * time.Second

// messages checks that notifications of the server arrive. It applies only to a database on a server.
func (d *Doctor) messages(ctx context.Context, report reportFunc) error {
	if health, err := admin.Health(ctx, d.Runner, d.Now); err == nil && health.Replica != nil {
		report(OK, "this server is a standby and sends no notifications; processes read it every second", "")
		return nil
	}
	began := time.Now()
	if err := admin.ListenCheck(ctx, d.Runner, notifyTimeout); err != nil {
		return err
	}
	report(OK, "LISTEN and NOTIFY work, in "+humanize.Took(time.Since(began)), "")
	return nil
}

// reportsOnly returns a check that always reports the same message. It takes the place of a check that runner leaves to the server.
func reportsOnly(message string) func(context.Context, reportFunc) error {
	return func(_ context.Context, report reportFunc) error {
		report(OK, message, "")
		return nil
	}
}

// server implements the check "database" for a database on a server.
func (d *Doctor) server(_ context.Context, report reportFunc) error {
	if d.OpenError != nil {
		return d.OpenError
	}
	s := admin.Server(d.Runner)
	bytes, _ := admin.Size(d.Runner)
	if s.Skew.Abs() > clockSlack {
		report(Warn, fmt.Sprintf("%s, PostgreSQL %d: the clock of this host differs by %v", d.Runner.Path(), s.Version/10000, s.Skew.Abs()),
			"timedatectl status")
		return nil
	}
	report(OK, fmt.Sprintf("%s, PostgreSQL %d, schema %s, version %d, %s", d.Runner.Path(), s.Version/10000, s.Schema, s.Tables,
		humanize.Size(bytes)), "")
	return nil
}

// serverProblems reports the problems of the server whose codes are in the parameter "codes". If there are none, it reports the text in the
// parameter "message".
func (d *Doctor) serverProblems(ctx context.Context, report reportFunc, message string, codes ...string) (*admin.ServerHealth, error) {
	health, err := admin.Health(ctx, d.Runner, d.Now)
	if err != nil {
		return nil, err
	}
	ok := true
	for _, p := range present.ServerProblems(health, d.Now) {
		if slices.Contains(codes, p.Code) {
			ok = false
			report(Warn, p.Message, p.Try)
		}
	}
	if ok {
		report(OK, message, "")
	}
	return health, nil
}

// sessions reports transactions that have been open for too long.
func (d *Doctor) sessions(ctx context.Context, report reportFunc) error {
	health, err := d.serverProblems(ctx, report, "no transaction stays open", "lock_held", "idle_in_transaction", "snapshot_held",
		"prepared_transaction")
	if err == nil && health.Unseen {
		report(OK, "the ages of other users' transactions and the standbys are hidden from "+health.User,
			"GRANT pg_monitor TO "+admin.Identifier(health.User))
	}
	return err
}

// vacuum reports tables with many dead rows. It also reports a server on which autovacuum is off.
func (d *Doctor) vacuum(ctx context.Context, report reportFunc) error {
	_, err := d.serverProblems(ctx, report, "the tables have few dead rows", "dead_rows", "autovacuum_off")
	return err
}

// replication reports standbys and replication slots that lag behind.
func (d *Doctor) replication(ctx context.Context, report reportFunc) error {
	health, err := d.serverProblems(ctx, report, "no standby or replication slot is behind", "slot_behind", "no_sync_standby",
		"standby_behind", "replica_behind")
	if err == nil && health.Replica == nil && len(health.Standbys) > 0 && health.SyncNames == "" {
		report(OK, "the replication is asynchronous: a standby that takes over lacks the confirmed writes that it has not received",
			present.SyncCommand())
	}
	return err
}

// tables checks whether somebody has changed runner's tables.
func (d *Doctor) tables(ctx context.Context, report reportFunc) error {
	if err := admin.Foreign(ctx, d.Runner); err != nil {
		return err
	}
	report(OK, "tables and triggers are unchanged; to check the pages: pg_amcheck", "")
	return nil
}

// rights reports what the server permits to the role in the address of the database.
func (d *Doctor) rights(ctx context.Context, report reportFunc) error {
	const writers = "; roles with write access to the tables can run commands as the users of the workers"
	if d.Runner == nil {
		report(OK, strings.TrimPrefix(writers, "; "), "")
		return nil
	}
	health, err := admin.Health(ctx, d.Runner, d.Now)
	if err != nil {
		return err
	}
	for _, p := range present.ServerProblems(health, d.Now) {
		if p.Code == "missing_rights" {
			report(Warn, p.Message, p.Try)
			return nil
		}
	}
	switch {
	case health.Rights.Owner:
		report(OK, health.User+" owns the tables"+writers, "")
	case len(health.Rights.Missing) == 0:
		report(OK, health.User+" may read and change tasks"+writers, "")
	default:
		report(OK, health.User+" may only read", "")
	}
	return nil
}
