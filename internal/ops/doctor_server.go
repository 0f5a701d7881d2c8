package ops

import (
	"context"
	"fmt"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/runner/admin"
)

// server implements the check "database" for a database on a server.
func (d *Doctor) server(ctx context.Context, report reportFunc) error {
	if d.OpenError != nil {
		return d.OpenError
	}
	if err := db.Of(d.Runner).Foreign(ctx); err != nil {
		return err
	}

	s := db.Of(d.Runner).Server()
	bytes, _ := db.Of(d.Runner).Size()
	if s.Skew.Abs() > clockSlack {
		report(Warn, fmt.Sprintf("%s, PostgreSQL %d: the clock of this host differs by %v",
			admin.Path(d.Runner), s.Version/10000, s.Skew.Abs()), "timedatectl status")
		return nil
	}

	report(OK, fmt.Sprintf("%s, PostgreSQL %d, schema %s, version %d, %s",
		admin.Path(d.Runner), s.Version/10000, s.Schema, s.Tables, humanize.Size(bytes)), "")
	return nil
}
