package ops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
)

// TestPermissionsAreCheckedForUserOfWorker checks a database that does not
// belong to the user who runs doctor, such as the database of a service. Only
// root can create such a database. If the test does not run as root, the
// database belongs to the user who runs the test.
func TestPermissionsAreCheckedForUserOfWorker(t *testing.T) {
	dir := t.TempDir()
	testkit.NoError(t, os.Chmod(dir, 0o700))
	path := filepath.Join(dir, "runner.db")
	r, err := runner.Open(t.Context(), path, runner.Options{})
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.NoError(t, r.Close()) })
	user, want := os.Geteuid(), "only this user and root can write it"
	if user == 0 {
		user = 65534
		for _, name := range []string{dir, path, path + ".d"} {
			testkit.NoError(t, os.Chown(name, user, user))
		}
		want = "only nobody and root can write it"
	}
	d := &Doctor{Runner: r, Now: time.Now(), Path: path}
	permissions := func() (result Check) {
		t.Helper()
		err := d.Run(t.Context(), func(c Check) error {
			if c.Check == "permissions" {
				result = c
			}
			return nil
		})
		testkit.NoError(t, err)
		return result
	}
	wantOK := func() {
		t.Helper()
		if got := permissions(); got.Status != OK || !strings.Contains(got.Message, want) {
			t.Errorf("got %+v, want %s with %q", got, OK, want)
		}
	}
	wantOK()

	// With workers, their users count.
	register(t, path, user)
	wantOK()
	if user != 0 { // a chown to root would lock the worker's user out
		end := register(t, path, 0)
		got := permissions()
		if got.Status != Fail || !strings.HasPrefix(got.Try, "run the worker as ") {
			t.Errorf("a worker of root: got %+v, want %s and a hint to run the worker as the owner", got, Fail)
		}
		end()
	}
	testkit.NoError(t, os.Chmod(dir, 0o777))
	if got := permissions(); got.Status != Fail {
		t.Errorf("a directory that everyone may write: got %+v, want %s", got, Fail)
	}
}

func TestChecksDescribeOneMoment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runner.db")
	r, err := runner.Open(t.Context(), path, runner.Options{})
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.NoError(t, r.Close()) })
	job := jobs.Define[struct{}]("j")
	d := &Doctor{Runner: r, Now: time.Now(), Path: path}
	testkit.NoError(t, d.Run(t.Context(), func(c Check) error {
		if want := "0 queues, 0 tasks wait"; c.Check == "queues" && c.Message != want {
			t.Errorf("got %q, want %q", c.Message, want)
		}
		if c.Check != "workers" {
			return nil
		}
		_, err := r.EnqueueMany(t.Context(), job.With(struct{}{}))
		return err
	}))
}

// register adds a worker of a user to the database, and returns a function that
// ends it.
func register(t *testing.T, path string, uid int) (end func()) {
	t.Helper()
	store, err := db.Open(t.Context(), path, db.Options{})
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.NoError(t, store.Close()) })
	host, err := os.Hostname()
	testkit.NoError(t, err)
	w, err := store.Register(t.Context(), db.WorkerInfo{Host: host, UID: uid, Lease: time.Hour, StartedAt: time.Now()}, nil)
	testkit.NoError(t, err)
	return func() { testkit.NoError(t, w.End(t.Context(), time.Now())) }
}
