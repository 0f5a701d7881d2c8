package main

import (
	"fmt"

	"example.com/runner/runner"
)

// server is the check "database" of one on a server.
func (e *examination) server(s *runner.ServerInfo, bytes int64, tell func(status, message, try string)) error {
	if s.Skew.Abs() > clockSlack {
		tell(checkWarn, fmt.Sprintf("%s, PostgreSQL %d: the clock of this host is %v off", e.r.Path(), s.Version/10000, s.Skew.Abs()), "timedatectl status")
		return nil
	}
	tell(checkOK, fmt.Sprintf("%s, PostgreSQL %d, schema %s, version %d, %s", e.r.Path(), s.Version/10000, s.Schema, s.Tables, size(bytes)), "")
	return nil
}
