package sqlite

import (
	"path/filepath"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
)

// Path is the path of a file. It implements engine.Address.
type Path string

var _ engine.Address = Path("")

// String returns the path.
func (p Path) String() string { return string(p) }

// Absolute returns the absolute path.
func (p Path) Absolute() (string, error) {
	if err := NotPath(string(p)); err != nil {
		return "", err
	}
	if filepath.IsAbs(string(p)) {
		return string(p), nil
	}
	return filepath.Abs(string(p))
}

// LocalFile returns true: the processes that use a file share memory, so all
// must be on one host.
func (Path) LocalFile() bool { return true }

// HasPassword returns false.
func (Path) HasPassword() bool { return false }

// Engine prepares a database in the file, without opening it.
func (p Path) Engine(o engine.Options) (engine.Engine, error) { return New(string(p), o) }

var (
	// uriPrefix matches the beginning of a URI, also in quotes that a file of
	// variables kept. Group 1 of the match is the name that it begins with.
	uriPrefix = humanize.Lazy(`(?i)^[\s"']*(?:([a-z][a-z0-9+.:-]*:)//|(file:|sqlite3?:|postgres:|postgresql:|mysql:|jdbc:|:memory:))`)
	// keywords matches the lists that libpq, psql and ADO.NET accept, and a
	// variable of libpq.
	keywords = humanize.Lazy(`(?i)^[\s"']*(host|hostaddr|port|dbname|database|user|user id|uid|` +
		`password|pwd|passfile|service|sslmode|server|data source|pg[a-z]+)\s*=`)
)

// NotPath returns an error for a text that other programs read as the address
// of a database, such as file:x, :memory: or host=… password=…. We would create
// a file of that name. The text may hold a password, so the error doesn't
// repeat it.
func NotPath(text string) error {
	what := "the address of a server is a URL, and not a list such as host=… user=…"
	if m := uriPrefix().FindStringSubmatch(text); m != nil {
		what = "no database of runner has an address with " + m[1] + m[2]
	} else if !keywords().MatchString(text) {
		return nil
	}
	return &jobs.Error{Kind: jobs.ErrInvalid, What: what,
		Hint: "the path of a file (./NAME if it has such a name), or postgres://USER@HOST:PORT/DATABASE; " +
			"the password in PGPASSWORD or ~/.pgpass"}
}
