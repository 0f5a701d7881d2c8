package sqlite

import (
	"path/filepath"
	"strings"

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

// LocalFile returns true: the processes that use a file share memory, so all must be on one host.
func (Path) LocalFile() bool { return true }

// HasPassword returns false.
func (Path) HasPassword() bool { return false }

// Engine prepares a database in the file. It does not open the file.
func (p Path) Engine(o engine.Options) (engine.Engine, error) { return New(string(p), o) }

var (
	// scheme matches the beginning of a URL, also in quotes that a file of
	// variables kept. Group 1 of the match is its scheme.
	scheme = humanize.Lazy(`^[\s"']*([A-Za-z][A-Za-z0-9+.:-]*)://`)
	// prefix matches what other programs write before a path or an address.
	prefix = humanize.Lazy(`(?i)^[\s"']*(file|sqlite3?|postgres|postgresql|mysql|jdbc):`)
	// keywords matches the lists that libpq, psql and ADO.NET accept, and a variable
	// of libpq.
	keywords = humanize.Lazy(`(?i)^[\s"']*(host|hostaddr|port|dbname|database|user|user id|uid|` +
		`password|pwd|passfile|service|sslmode|server|data source|pg[a-z]+)\s*=`)
)

// NotPath returns an error for a text that other programs read as the address
// of a database, such as file:x, :memory: or host=… password=…. We would create
// a file of that name. The text may hold a password, so the error doesn't repeat
// it.
func NotPath(text string) error {
	const server = "postgres://USER@HOST:PORT/DATABASE; the password in PGPASSWORD or ~/.pgpass"
	refuse := func(what, hint string) error { return &jobs.Error{Kind: jobs.ErrInvalid, What: what, Hint: hint} }
	switch m := scheme().FindStringSubmatch(text); {
	case strings.HasPrefix(text, ":memory:"):
		return refuse("a database in memory cannot hold tasks, because other processes must share it", "the path of a file")
	case m != nil:
		return refuse("no database of runner has an address with "+m[1]+"://", "the path of a file, or "+server)
	case prefix().MatchString(text):
		name := prefix().FindStringSubmatch(text)[1]
		return refuse("a URI that begins with "+name+": is not a path", "a path without "+name+": and without parameters; "+
			"for a file of such a name, ./"+name+":...")
	case keywords().MatchString(text):
		return refuse("the address of a server is a URL, and not a list such as host=… user=…", server)
	}
	return nil
}
