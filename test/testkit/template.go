package testkit

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Template returns a function that returns the path of a new file. Each of
// these files is a copy of the one that create makes at the first call:
// creating a database takes ten times as long as copying one.
func Template(create func(path string) error) func(t testing.TB) (path string) {
	content := sync.OnceValues(func() ([]byte, error) {
		dir, err := os.MkdirTemp("", "template")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()

		path := filepath.Join(dir, "test.db")
		if err := create(path); err != nil {
			return nil, err
		}
		return os.ReadFile(path)
	})
	return func(t testing.TB) string {
		t.Helper()
		text, err := content()
		NoError(t, err)
		path := filepath.Join(t.TempDir(), "test.db")
		NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
}
