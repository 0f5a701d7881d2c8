package doctor

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
)

// notifyTimeout is the time limit for a notification of the server.
const notifyTimeout = 5 * time.Second

// messages checks that the server's notifications arrive. It runs only for databases on servers.
func (d *Doctor) messages(ctx context.Context, report reportFunc) error {
	began := time.Now()
	if err := admin.ListenCheck(ctx, d.Runner, notifyTimeout); err != nil {
		return err
	}
	report(OK, "LISTEN and NOTIFY work, in "+humanize.Took(time.Since(began)), "")
	return nil
}

// server implements the check "database" for a database on a server.
func (d *Doctor) server(s *admin.ServerInfo, bytes int64, report reportFunc) error {
	if s.Skew.Abs() > clockSlack {
		report(Warn, fmt.Sprintf("%s, PostgreSQL %d: the clock of this host differs by %v", d.Runner.Path(), s.Version/10000, s.Skew.Abs()),
			"timedatectl status")
		return nil
	}
	report(OK, fmt.Sprintf("%s, PostgreSQL %d, schema %s, version %d, %s", d.Runner.Path(), s.Version/10000, s.Schema, s.Tables,
		humanize.Size(bytes)), "")
	return nil
}
