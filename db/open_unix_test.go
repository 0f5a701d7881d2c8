//go:build unix

package db

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestOnlyOwnerCanAccessFilesWithAnyUmask(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := t.TempDir()
	d, err := Open(t.Context(), filepath.Join(dir, "x.db"), Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	seen := 0
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if entry.IsDir() {
			want = 0o700
		}
		if seen++; info.Mode().Perm() != want {
			t.Errorf("%s: got mode %v, want %v", entry.Name(), info.Mode(), want)
		}
		return nil
	})
	if err != nil || seen < 5 {
		t.Errorf("got %d files and error %v, want at least 5 files", seen, err)
	}
}

// asNobody makes a child process run as the user nobody if the test runs as
// root. File permissions don't apply to root.
func asNobody(c *exec.Cmd) {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

// worldWritableDir creates a directory that the user nobody may enter and write
// to.
func worldWritableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o777) }) // give the permissions back, so that the cleanup of t.TempDir can remove the directory
	return dir
}

// TestOpenRefusesPlantedFilesBesideDatabase plants files and links where
// Open would create its own, as another user could in a shared directory.
func TestOpenRefusesPlantedFilesBesideDatabase(t *testing.T) {
	inside := func(plant func(lock string) error) func(string) error {
		return func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), plant(dir+"/init.lock")) }
	}
	for name, c := range map[string]struct {
		plant func(dir string) error
		want  string
		root  bool
	}{
		"link": {inside(func(lock string) error { return os.Symlink(filepath.Join(filepath.Dir(lock), "../planted"), lock) }),
			"init.lock is not a regular file", false},
		"FIFO":          {inside(func(lock string) error { return syscall.Mkfifo(lock, 0o666) }), "init.lock is not a regular file", false},
		"dangling link": {func(dir string) error { return os.Symlink("nowhere", dir) }, "is not a directory", false},
		"file":          {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "is not a directory", false},
		"writable directory": {func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) },
			"may be written by everyone", false},
		"directory of another user": {func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534)) },
			"belongs to ", true},
		"link to a directory": {func(dir string) error { return errors.Join(os.Mkdir(dir+"x", 0o700), os.Symlink(dir+"x", dir)) },
			"is not a directory", false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root && os.Getuid() != 0 {
				return
			}
			path := filepath.Join(t.TempDir(), "q.db")
			if err := c.plant(path + ".d"); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), path, Options{Create: true})
			if kindOf(err) != "permission" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want permission: %s", err, c.want)
			}
			for _, made := range []string{path, filepath.Join(filepath.Dir(path), "planted")} {
				if _, err := os.Lstat(made); err == nil {
					t.Errorf("got %s, want no file", made)
				}
			}
		})
	}
}

func TestOpenRefusesLinkForLogOfDatabase(t *testing.T) {
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		path := filepath.Join(t.TempDir(), "q.db")
		create(t, path)
		if err := os.Symlink("planted", path+end); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), path, Options{})
		if kindOf(err) != "permission" || !strings.Contains(err.Error(), end+" is not a regular file") {
			t.Errorf("got error %v, want permission: %s is not a regular file", err, end)
		}
	}
	path := filepath.Join(t.TempDir(), "new.db")
	if err := os.Symlink("planted", path+"-journal"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, Options{Create: true}); kindOf(err) != "permission" {
		t.Errorf("got error %v, want permission", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no new file", err)
	}
}

// TestHeldInitLockEndsWithBusyTimeout: another user may hold the lock for
// as long as they like.
func TestHeldInitLockEndsWithBusyTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "q.db")
	if err := os.Mkdir(path+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(path + ".d/init.lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), path, Options{Create: true, BusyTimeout: time.Millisecond})
	if kindOf(err) != "busy" {
		t.Errorf("got error %v, want busy", err)
	}
}

func TestOpenReportsMissingPermissionsAndChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		mode, dirMode fs.FileMode
		options       Options
		missing       bool // whether the file does not exist yet
	}{
		"a file that cannot be read":                  {mode: 0, dirMode: 0o777},
		"a file that cannot be written":               {mode: 0o444, dirMode: 0o777},
		"a directory that cannot be written":          {mode: 0o666, dirMode: 0o555},
		"neither can be written":                      {mode: 0o444, dirMode: 0o555},
		"a new file in a directory that is read-only": {dirMode: 0o555, missing: true, options: Options{Create: true}},
		"a directory that cannot be entered":          {mode: 0o666, dirMode: 0},
	} {
		dir := worldWritableDir(t)
		path := filepath.Join(dir, "x.db")
		var before []byte
		if !c.missing {
			create(t, path)
			before = testkit.ReadFile(t, path)
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, c.dirMode); err != nil {
			t.Fatal(err)
		}
		r := send(t, childCommand{Do: "write", Path: path, Options: c.options}, asNobody)
		if r.Kind != "permission" || r.Free {
			t.Errorf("%s: got error kind %q, write accepted: %v; want kind permission and no write", name, r.Kind, r.Free)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if !c.missing {
			_ = os.Chmod(path, 0o600)
			if !bytes.Equal(before, testkit.ReadFile(t, path)) {
				t.Errorf("%s: got a changed file, want it unchanged", name)
			}
		} else if names := listing(t, dir); names != "" {
			t.Errorf("%s: got files %s, want none", name, names)
		}
	}
}

// TestOpenRejectsReadOnlyFile checks that Open with Create reports a read-only
// file. SQLite itself opens such a file and fails at the first write.
func TestOpenRejectsReadOnlyFile(t *testing.T) {
	dir := worldWritableDir(t)
	path := filepath.Join(dir, "x.db")
	create(t, path)
	before := testkit.ReadFile(t, path)
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	for options, want := range map[Options]string{{Create: true}: "permission", {}: "", {ReadOnly: true}: ""} {
		if r := send(t, childCommand{Do: "open", Path: path, Options: options}, asNobody); r.Kind != want {
			t.Errorf("options %+v: got error kind %q, want %q", options, r.Kind, want)
		}
	}
	if !bytes.Equal(before, testkit.ReadFile(t, path)) {
		t.Error("got a changed file, want it unchanged")
	}
}

func TestManyProcessesOpenNewFileAtOnce(t *testing.T) {
	const processes, rounds = 16, 5
	for range rounds {
		path := filepath.Join(t.TempDir(), "x.db")
		var all sync.WaitGroup
		reports := make([]report, processes)
		for i := range processes {
			all.Go(func() {
				reports[i] = send(t, childCommand{Do: "write", Path: path, Options: Options{Create: true, BusyTimeout: time.Minute}}, nil)
			})
		}
		all.Wait()
		seen := map[int64]bool{}
		for _, r := range reports {
			if r.Error != "" || seen[r.ID] {
				t.Errorf("got error %q and task id %d (seen before: %v), want no error and a new id", r.Error, r.ID, seen[r.ID])
			}
			seen[r.ID] = true
		}
	}
}

func TestErrBusyNamesHolderOfLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	create(t, path)
	holder := start(t, childCommand{Do: "hold", Path: path}, nil)
	if _, ok := holder.next(); !ok {
		t.Fatal("got no report of the child process, want one when it has the lock")
	}
	r := send(t, childCommand{Do: "write", Path: path, Options: Options{BusyTimeout: 50 * time.Millisecond}}, nil)
	want := fmt.Sprintf("no turn to write in 50ms: another process has the write lock (pid %d, ", holder.Process.Pid)
	if r.Kind != "busy" || !strings.Contains(r.Error, want) {
		t.Errorf("got error kind %q and text %q, want kind busy and a text with %q", r.Kind, r.Error, want)
	}
	waiting := start(t, childCommand{Do: "write", Path: path, Options: Options{BusyTimeout: time.Minute}}, nil)
	holder.in.Close()
	if r, ok := waiting.next(); !ok || !r.Free || r.ID != 1 {
		t.Errorf("after the lock is free: got report %+v (found: %v), want one of a write of task 1", r, ok)
	}
	if err := holder.Wait(); err != nil {
		t.Errorf("the holder of the lock: got error %v, want none", err)
	}
}

func TestKilledWritersLoseNoConfirmedTask(t *testing.T) {
	const rounds, writers = 20, 2
	levels := []Options{{Normal: true, BusyTimeout: time.Minute}, {BusyTimeout: time.Minute},
		{Flash: 20 * time.Millisecond, BusyTimeout: time.Minute}}
	path := filepath.Join(t.TempDir(), "x.db")
	create(t, path)
	confirmed := map[int64]bool{}
	for round := range rounds {
		var all []*child
		for range writers {
			all = append(all, start(t, childCommand{Do: "flood", Path: path, Options: levels[round%len(levels)]}, nil))
		}
		for i, c := range all {
			for range 5 + 3*i + round { // wait for some reports, so that the kill comes in the middle of a later write
				r, ok := c.next()
				if !ok || r.ID == 0 || confirmed[r.ID] {
					t.Fatalf("got report %+v (found: %v, id seen before: %v), want one with a new task id", r, ok, confirmed[r.ID])
				}
				confirmed[r.ID] = true
			}
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for r, ok := c.next(); ok && r.ID != 0; r, ok = c.next() { // read the reports that the child has printed before the kill
				confirmed[r.ID] = true
			}
		}
		d, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var found []int64
		var integrity string
		if err := d.read.Select(&found, `SELECT id FROM tasks`); err != nil {
			t.Error(err)
		}
		if err := d.read.Get(&integrity, `SELECT group_concat(integrity_check)
			FROM pragma_integrity_check`); err != nil || integrity != "ok" {
			t.Errorf("integrity_check: got %q and error %v, want ok", integrity, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		stored := map[int64]bool{}
		for _, id := range found {
			stored[id] = true
		}
		for id := range confirmed {
			if !stored[id] {
				t.Errorf("round %d: got no task %d, want it, because its write was confirmed", round, id)
			}
		}
	}
}

func TestOpenRejectsFileWithTwoNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	d, err := Open(t.Context(), path, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, jobs.ErrPermission) {
		t.Errorf("got error %v, want one that is %v", err, jobs.ErrPermission)
	}
}
