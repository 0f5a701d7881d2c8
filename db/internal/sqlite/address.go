package sqlite

import (
	"path/filepath"
	"strings"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/pattern"
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

// LocalFile returns true.
func (Path) LocalFile() bool { return true }

// SharedByHosts returns false, because the processes that use a file share memory, so all must be on one host.
func (Path) SharedByHosts() bool { return false }

// HasPassword returns false.
func (Path) HasPassword() bool { return false }

// Engine prepares a database in the file. It does not open the file.
func (p Path) Engine(o engine.Options) (engine.Engine, error) { return New(string(p), o) }

var (
	// scheme matches the beginning of a URL. Group 1 of the match is its scheme.
	scheme = pattern.Lazy(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	// keywords matches the form of an address that libpq and psql accept, too.
	keywords = pattern.Lazy(`^\s*(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=`)
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
	case strings.HasPrefix(text, "file:"):
		return refuse("a URI that begins with file: is not a path", "a path without file: and without parameters; "+
			"for a file of such a name, ./file:...")
	case m != nil:
		return refuse("no database of runner has an address with "+m[1]+"://", "the path of a file, or "+server)
	case keywords().MatchString(text):
		return refuse("the address of a server is a URL, and not a list such as host=… user=…", server)
	}
	return nil
}
