package sqlite

import (
	"path/filepath"

	"example.com/runner/db/internal/engine"
)

// Path is the path of a file. It implements engine.Address.
type Path string

var _ engine.Address = Path("")

// String returns the path.
func (p Path) String() string { return string(p) }

// Absolute returns the absolute path.
func (p Path) Absolute() (string, error) {
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
