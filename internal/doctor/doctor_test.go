package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/record"
	"example.com/runner/internal/testkit"
	"example.com/runner/runner"
)

// TestPermissionsAreCheckedForTheUserOfTheWorker checks a database that does not belong to the user who runs doctor, such as the database
// of a service. Only root can create such a database. If the test does not run as root, the database belongs to the user who runs the test.
func TestPermissionsAreCheckedForTheUserOfTheWorker(t *testing.T) {
	dir := t.TempDir()
	testkit.NoError(t, os.Chmod(dir, 0o700))
	path := filepath.Join(dir, "runner.db")
	r, err := runner.Open(t.Context(), path, runner.Options{})
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.NoError(t, r.Close()) })
	want := "only this user and root can write it"
	if os.Geteuid() == 0 {
		for _, name := range []string{dir, path, path + ".d"} {
			testkit.NoError(t, os.Chown(name, 65534, 65534))
		}
		want = "only nobody and root can write it"
	}
	d := &Doctor{Runner: r, Now: time.Now(), Path: path}
	permissions := func() (result record.Check) {
		t.Helper()
		err := d.Run(t.Context(), func(c record.Check) error {
			if c.Check == "permissions" {
				result = c
			}
			return nil
		})
		testkit.NoError(t, err)
		return result
	}
	if got := permissions(); got.Status != OK || !strings.Contains(got.Message, want) {
		t.Errorf("got %+v, want %s with %q", got, OK, want)
	}
	testkit.NoError(t, os.Chmod(dir, 0o777))
	if got := permissions(); got.Status != Fail {
		t.Errorf("a directory that everyone may write: got %+v, want %s", got, Fail)
	}
}
