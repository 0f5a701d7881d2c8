package doctor

import (
	"context"
	"fmt"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
)

// server implements the check "database" for a database on a server.
func (d *Doctor) server(_ context.Context, report reportFunc) error {
	if d.OpenError != nil {
		return d.OpenError
	}
	s := admin.Store(d.Runner).Server()
	bytes, _ := admin.Store(d.Runner).Size()
	if s.Skew.Abs() > clockSlack {
		report(Warn, fmt.Sprintf("%s, PostgreSQL %d: the clock of this host differs by %v", d.Runner.Path(), s.Version/10000, s.Skew.Abs()),
			"timedatectl status")
		return nil
	}
	report(OK, fmt.Sprintf("%s, PostgreSQL %d, schema %s, version %d, %s", d.Runner.Path(), s.Version/10000, s.Schema, s.Tables,
		humanize.Size(bytes)), "")
	return nil
}

// sessions reports transactions that have been open for too long.
func (d *Doctor) sessions(ctx context.Context, report reportFunc) error {
	fine := func(present.Status) string { return "no transaction stays open" }
	if err := d.problems(fine, "lock_held", "idle_in_transaction", "snapshot_held")(ctx, report); err != nil {
		return err
	}
	health, err := admin.Store(d.Runner).Health(ctx, d.Now)
	if err != nil {
		return err
	}
	if health.Unseen {
		report(OK, "the ages of other users' transactions are hidden from "+health.User,
			"GRANT pg_monitor TO "+admin.Identifier(health.User))
	}
	return nil
}

// tables checks whether somebody has changed runner's tables.
func (d *Doctor) tables(ctx context.Context, report reportFunc) error {
	if err := admin.Store(d.Runner).Foreign(ctx); err != nil {
		return err
	}
	report(OK, "tables and triggers are unchanged; to check the pages: pg_amcheck", "")
	return nil
}
