package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/db/internal/owner"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// crashed makes a backup with one task, and a database with two tasks whose
// process was killed: the second task is only in the WAL.
func crashed(t *testing.T) (path, backup string) {
	t.Helper()
	d := dbtest.OpenAt(t, filepath.Join(t.TempDir(), "a.db"), db.Options{Create: true})
	dir := t.TempDir()
	path, backup = filepath.Join(dir, "a.db"), filepath.Join(dir, "backup.db")
	insert := func() {
		if _, err := d.Insert(t.Context(), []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	insert()
	if _, err := d.Backup(t.Context(), backup, false); err != nil {
		t.Fatal(err)
	}
	insert()
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(d.Path() + end)
		if err != nil || len(data) == 0 {
			t.Fatalf("got %d bytes of %s and error %v, want some", len(data), d.Path()+end, err)
		}
		if err := os.WriteFile(path+end, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path, backup
}

// tasks returns the number of tasks in an undamaged database.
func tasks(t *testing.T, path string) int {
	t.Helper()
	d, err := db.Open(t.Context(), path, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if damage, err := d.Integrity(t.Context(), true); err != nil || damage != nil {
		t.Errorf("%s: got damage %v and error %v, want neither", path, damage, err)
	}
	ids, err := d.IDs(t.Context(), jobs.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}

func TestRestoredFileNeverMeetsOldLog(t *testing.T) {
	path, backup := crashed(t)
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	done, err := db.Restore(t.Context(), path, backup, db.Options{}, now)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "name of the old database", filepath.Base(done.Kept), "a.db.before-restore-2026-07-01T12-00-00.000")
	testkit.Equal(t, "tasks", tasks(t, path), 1)

	again, err := db.Restore(t.Context(), path, done.Kept, db.Options{}, now.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Equal(t, "tasks after going back", tasks(t, path), 2)
	testkit.Equal(t, "tasks of the old database", tasks(t, done.Kept), 2)
	testkit.Equal(t, "tasks of the second old database", tasks(t, again.Kept), 1)
}

// TestInterruptedRestoreIsRefusedAndRepeated leaves what a kill between the
// link and the rename leaves, of a sound database and of a damaged one, whose
// log was moved.
func TestInterruptedRestoreIsRefusedAndRepeated(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there the number of links isn't read
	}
	for _, damaged := range []bool{false, true} {
		path, backup := crashed(t)
		kept := path + ".before-restore-2026-07-01T12-00-00.000"
		testkit.NoError(t, os.Link(path, kept))
		if damaged {
			testkit.NoError(t, os.Rename(path+"-wal", kept+"-wal"))
		}
		for _, create := range []bool{false, true} {
			_, err := db.Open(t.Context(), path, db.Options{Create: create})
			if err == nil || !strings.Contains(err.Error(), "has more than one name") {
				t.Errorf("got error %v, want that the file has two names", err)
			}
		}
		done, err := db.Restore(t.Context(), path, backup, db.Options{}, time.Now())
		testkit.NoError(t, err)
		testkit.Equal(t, "tasks", tasks(t, path), 1)
		old, err := filepath.Glob(path + ".before-restore-*")
		testkit.NoError(t, err)
		old = slices.DeleteFunc(old, func(name string) bool { return strings.HasSuffix(name, "-wal") })
		testkit.Equal(t, "names of the old database", old, []string{done.Kept})
		testkit.Equal(t, "tasks of the old database", tasks(t, done.Kept), 2)
	}
}

// TestRestoredFileKeepsOwnerAndMode lets root restore the database of a worker
// that runs as another user.
func TestRestoredFileKeepsOwnerAndMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there are no owners and modes
	}
	path, backup := crashed(t)
	testkit.NoError(t, os.Chmod(path, 0o640))
	if os.Getuid() == 0 {
		testkit.NoError(t, os.Chown(path, 4411, 4412))
	}
	before, err := os.Stat(path)
	testkit.NoError(t, err)
	_, err = db.Restore(t.Context(), path, backup, db.Options{}, time.Now())
	testkit.NoError(t, err)
	after, err := os.Stat(path)
	testkit.NoError(t, err)
	uid, gid, _ := owner.Of(before)
	newUID, newGID, _ := owner.Of(after)
	testkit.Equal(t, "owner", [2]int{newUID, newGID}, [2]int{uid, gid})
	testkit.Equal(t, "mode", after.Mode(), before.Mode())
}

func TestFailedRestoreChangesNothing(t *testing.T) {
	path, backup := crashed(t)
	names := func() (list []string) {
		entries, err := os.ReadDir(filepath.Dir(path))
		testkit.NoError(t, err)
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), "-wal") { // restore writes its pages into the database first
				list = append(list, entry.Name())
			}
		}
		return list
	}
	good, err := os.ReadFile(backup)
	testkit.NoError(t, err)
	bad := filepath.Join(filepath.Dir(path), "bad.db")
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"text": {[]byte(strings.Repeat("text\n", 2000)), jobs.ErrSchema}, "one byte": {[]byte("x"), jobs.ErrSchema},
		"empty": {nil, jobs.ErrSchema}, "cut": {good[:len(good)/2], jobs.ErrCorrupt},
		"overwritten": {append(append(good[:8192:8192], make([]byte, 16<<10)...), good[24<<10:]...), jobs.ErrCorrupt},
	} {
		testkit.NoError(t, os.WriteFile(bad, c.data, 0o600))
		before := names()
		_, err := db.Restore(t.Context(), path, bad, db.Options{}, time.Now())
		if !errors.Is(err, c.want) || strings.Contains(err.Error(), ".part") {
			t.Errorf("%s: got error %v, want one that is %v and names the file", name, err, c.want)
		}
		testkit.Equal(t, name+": files", names(), before)
	}
	testkit.Equal(t, "tasks", tasks(t, path), 2)

	d := dbtest.OpenAt(t, path, db.Options{})
	if _, err := db.Restore(t.Context(), path, backup, db.Options{}, time.Now()); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("open database: got error %v, want one that is %v", err, jobs.ErrConflict)
	}
	if err := d.Replaced(); err != nil {
		t.Errorf("got error %v, want that the open database stays", err)
	}
}
