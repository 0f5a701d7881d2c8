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
)

func TestTheFilesOfADatabaseAreTheOwnersAloneWhateverTheUmask(t *testing.T) {
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
			t.Errorf("%s has mode %v", entry.Name(), info.Mode())
		}
		return nil
	})
	if err != nil || seen < 5 {
		t.Errorf("got %+v, %v; want no error, seen >= 5", seen, err)
	}
}

// lesser makes a child run as nobody if the test runs as root, because permissions do not apply to root.
func lesser(c *exec.Cmd) {
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

// public makes a directory that the user nobody may enter and write to.
func public(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o777) }) // so that t.TempDir can remove it
	return dir
}

func TestWhatPermissionsForbidIsAProblemAndChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		mode, dirMode fs.FileMode
		options       Options
		none          bool // the file does not exist yet
	}{
		"a file that cannot be read":                  {mode: 0, dirMode: 0o777},
		"a file that cannot be written":               {mode: 0o444, dirMode: 0o777},
		"a directory that cannot be written":          {mode: 0o666, dirMode: 0o555},
		"neither can be written":                      {mode: 0o444, dirMode: 0o555},
		"a new file in a directory that is read-only": {dirMode: 0o555, none: true, options: Options{Create: true}},
		"a directory that cannot be entered":          {mode: 0o666, dirMode: 0},
	} {
		dir := public(t)
		path := filepath.Join(dir, "x.db")
		var before []byte
		if !c.none {
			create(t, path)
			before = contents(t, path)
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, c.dirMode); err != nil {
			t.Fatal(err)
		}
		r := send(t, errand{"write", path, c.options}, lesser)
		if r.Kind != "permission" || r.Free {
			t.Errorf(`%s: got %+v; want r.Kind = "permission", not (r.Free)`, name, r)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if !c.none {
			_ = os.Chmod(path, 0o600)
			if !bytes.Equal(before, contents(t, path)) {
				t.Errorf("%s: it was changed", name)
			}
		} else if names := listing(t, dir); names != "" {
			t.Errorf("%s: left behind: %s", name, names)
		}
	}
}

// TestAFileThatCannotBeWrittenIsRefusedWhenItIsOpened checks that Open with Create reports a read-only file. SQLite itself opens such a
// file and fails at the first write.
func TestAFileThatCannotBeWrittenIsRefusedWhenItIsOpened(t *testing.T) {
	dir := public(t)
	path := filepath.Join(dir, "x.db")
	create(t, path)
	before := contents(t, path)
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	for options, want := range map[Options]string{{Create: true}: "permission", {}: "", {ReadOnly: true}: ""} {
		if r := send(t, errand{"open", path, options}, lesser); r.Kind != want {
			t.Errorf("%+v: got %+v, want r.Kind = want", options, r)
		}
	}
	if !bytes.Equal(before, contents(t, path)) {
		t.Error("it was changed")
	}
}

func TestManyProcessesOpenANewFileAtOnce(t *testing.T) {
	const processes, rounds = 16, 5
	for range rounds {
		path := filepath.Join(t.TempDir(), "x.db")
		var all sync.WaitGroup
		reports := make([]report, processes)
		for i := range processes {
			all.Go(func() {
				reports[i] = send(t, errand{"write", path, Options{Create: true, BusyTimeout: time.Minute}}, nil)
			})
		}
		all.Wait()
		seen := map[int64]bool{}
		for _, r := range reports {
			if r.Error != "" || seen[r.ID] {
				t.Errorf(`got %+v; want Error = "", not (seen[ID])`, r)
			}
			seen[r.ID] = true
		}
	}
}

func TestALockThatAnotherProcessHoldsIsBusyAndItsHolderIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	create(t, path)
	holder := start(t, errand{Do: "hold", Path: path}, nil)
	if _, ok := holder.next(); !ok {
		t.Fatal("the lock was not taken")
	}
	r := send(t, errand{"write", path, Options{BusyTimeout: 50 * time.Millisecond}}, nil)
	if r.Kind != "busy" || !strings.Contains(r.Error, fmt.Sprintf("pid %d", holder.Process.Pid)) {
		t.Errorf("%+v, want one that names pid %d", r, holder.Process.Pid)
	}
	waiting := start(t, errand{"write", path, Options{BusyTimeout: time.Minute}}, nil)
	holder.in.Close()
	if r, ok := waiting.next(); !ok || !r.Free || r.ID != 1 {
		t.Errorf("when the lock is free: %+v", r)
	}
	if err := holder.Wait(); err != nil {
		t.Error(err)
	}
}

func TestKilledWritersLoseNothingThatTheyWereTold(t *testing.T) {
	const rounds, writers = 20, 2
	path := filepath.Join(t.TempDir(), "x.db")
	create(t, path)
	told := map[int64]bool{}
	for round := range rounds {
		var all []*child
		for range writers {
			all = append(all, start(t, errand{Do: "flood", Path: path, Options: Options{Normal: round%2 == 0, BusyTimeout: time.Minute}},
				nil))
		}
		for i, c := range all {
			for range 5 + 3*i + round { // so that the kill comes in the middle of the next write
				r, ok := c.next()
				if !ok || r.ID == 0 || told[r.ID] {
					t.Fatalf("got %+v; want ok, ID != 0, not (told[ID])", r)
				}
				told[r.ID] = true
			}
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			for r, ok := c.next(); ok && r.ID != 0; r, ok = c.next() { // reports that the child wrote before the kill
				told[r.ID] = true
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
			t.Errorf("integrity_check: %s %v", integrity, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		there := map[int64]bool{}
		for _, id := range found {
			there[id] = true
		}
		for id := range told {
			if !there[id] {
				t.Errorf("round %d: task %d is lost", round, id)
			}
		}
	}
}

func TestAFileWithTwoNamesIsRefused(t *testing.T) {
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
		t.Errorf("opened: %v", err)
	}
}
