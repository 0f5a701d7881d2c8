package doctor

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
)

// messageWait is the time limit for a notification of the server.
const messageWait = 5 * time.Second

// messages checks that the server's notifications arrive. It runs only for databases on servers.
func (e *Doctor) messages(ctx context.Context, tell func(status, message, try string)) error {
	began := time.Now()
	if err := admin.ListenCheck(ctx, e.Runner, messageWait); err != nil {
		return err
	}
	tell(OK, "LISTEN and NOTIFY arrive in "+humanize.Took(time.Since(began)), "")
	return nil
}

// server implements the check "database" for a database on a server.
func (e *Doctor) server(s *admin.ServerInfo, bytes int64, tell func(status, message, try string)) error {
	if s.Skew.Abs() > clockSlack {
		tell(Warn, fmt.Sprintf("%s, PostgreSQL %d: the clock of this host is %v off", e.Runner.Path(), s.Version/10000, s.Skew.Abs()),
			"timedatectl status")
		return nil
	}
	tell(OK, fmt.Sprintf("%s, PostgreSQL %d, schema %s, version %d, %s", e.Runner.Path(), s.Version/10000, s.Schema, s.Tables,
		humanize.Size(bytes)), "")
	return nil
}
