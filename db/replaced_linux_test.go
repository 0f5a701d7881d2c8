package db

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/jobs"
)

// damages holds functions that damage the files of an open database, by the
// name of the damage.
var damages = map[string]func(path string) error{
	"file removed":          os.Remove,
	"file moved":            func(path string) error { return os.Rename(path, path+".old") },
	"file truncated":        func(path string) error { return os.Truncate(path, 0) },
	"another file moved in": func(path string) error { return errors.Join(copyFile(path, path+".new"), os.Rename(path+".new", path)) },
	"log removed":           func(path string) error { return os.Remove(path + "-wal") },
	"shared memory removed": func(path string) error { return os.Remove(path + "-shm") },
	"shared memory replaced": func(path string) error {
		return errors.Join(os.Remove(path+"-shm"), os.WriteFile(path+"-shm", nil, 0o600))
	},
}

// copyFile copies a file, like cp.
func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

func TestWritesToReplacedFilesFail(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			d := openTest(t)
			if _, err := d.Insert(t.Context(), commandTrue, now()); err != nil {
				t.Fatal(err)
			}
			if err := damage(d.path); err != nil {
				t.Fatal(err)
			}
			if got, err := d.Insert(t.Context(), commandTrue, now()); !errors.Is(err, jobs.ErrReplaced) {
				t.Errorf("a write after it: got %v and error %v, want error %v", got, err, jobs.ErrReplaced)
			}
		})
		t.Run("before a write by one statement: "+name, func(t *testing.T) {
			d := openTest(t)
			insertByOneStatement(t, d)
			if err := damage(d.path); err != nil {
				t.Fatal(err)
			}
			d.looked = time.Now()
			if got, err := d.Insert(t.Context(), commandTrue, now()); !errors.Is(err, jobs.ErrReplaced) {
				t.Errorf("a write after it: got %v and error %v, want error %v", got, err, jobs.ErrReplaced)
			}
		})
		t.Run("during a write: "+name, func(t *testing.T) {
			d := openTest(t)
			if _, err := d.Insert(t.Context(), commandTrue, now()); err != nil {
				t.Fatal(err)
			}
			err := d.update(t.Context(), normal, func(tx *tx) error {
				_, err := tx.insertSpec(&commandTrue[0], nil, now())
				return errors.Join(err, damage(d.path))
			})
			if !errors.Is(err, jobs.ErrReplaced) {
				t.Errorf("got error %v, want %v", err, jobs.ErrReplaced)
			}
		})
	}
}

// TestCloseKeepsLogOfReplacedDatabase removes the shared memory of an open
// database, so that the database counts as replaced. Close must not change the
// write-ahead log, because the log may contain tasks of other processes.
// Without the function keepLog, SQLite would copy into the file only the part
// of the log that this process knows. Then SQLite would delete the log with the
// tasks of the other processes.
func TestCloseKeepsLogOfReplacedDatabase(t *testing.T) {
	d := openTest(t)
	if _, err := d.Insert(t.Context(), commandTrue, now()); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(d.path + "-wal")
	if err != nil || len(want) == 0 {
		t.Fatalf("got a log of %d bytes and error %v, want a log that is not empty", len(want), err)
	}
	if err := os.Remove(d.path + "-shm"); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(d.path + "-wal"); !bytes.Equal(got, want) {
		t.Errorf("got a log of %d bytes and error %v, want the unchanged log of %d bytes", len(got), err, len(want))
	}
}

func TestOpenFailsIfFilesOfOpenDatabaseAreMissing(t *testing.T) {
	for _, name := range []string{"file removed", "file moved", "file truncated", "another file moved in", "log removed",
		"shared memory removed"} {
		d := openTest(t)
		if _, err := d.Insert(t.Context(), commandTrue, now()); err != nil {
			t.Fatal(err)
		}
		if err := damages[name](d.path); err != nil {
			t.Fatal(err)
		}
		if other, err := Open(t.Context(), d.path, Options{Create: true, BusyTimeout: time.Millisecond}); !errors.Is(err,
			jobs.ErrReplaced) {
			t.Errorf("%s: got error %v, want %v", name, err, jobs.ErrReplaced)
			if err == nil {
				other.Close()
			}
		}
	}
}

// TestOpenRejectsFileThatIsMountPoint checks that Open rejects a file that is
// mounted without its directory, for example by docker run -v
// ./q.db:/data/q.db. The log of such a file would be outside the mount.
func TestOpenRejectsFileThatIsMountPoint(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	dir := t.TempDir()
	inside, outside, beside := filepath.Join(dir, "inside", "q.db"), filepath.Join(dir, "outside", "q.db"),
		filepath.Join(dir, "beside", "q.db")
	for _, path := range []string{inside, outside, beside} {
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	create(t, outside)
	if err := os.WriteFile(inside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	type result struct{ mount, file, dir error }
	done := make(chan result)
	go func() { // the goroutine never unlocks its thread: the thread gets its own mount namespace, and must end with the goroutine
		runtime.LockOSThread()
		open := func(path string) error {
			d, err := Open(t.Context(), path, Options{})
			if err == nil {
				err = d.Close()
			}
			return err
		}
		r := result{mount: errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
			unix.Mount(outside, inside, "", unix.MS_BIND, ""), unix.Mount(filepath.Dir(outside), filepath.Dir(beside), "", unix.MS_BIND,
				""))}
		if r.mount == nil {
			r.file, r.dir = open(inside), open(beside)
		}
		done <- r
	}()
	got := <-done
	if got.mount != nil {
		t.Fatalf("mount the file and the directory: got error %v, want none", got.mount)
	}
	if !errors.Is(got.file, jobs.ErrPermission) {
		t.Errorf("a file that is a mount point: got error %v, want %v", got.file, jobs.ErrPermission)
	}
	if got.dir != nil {
		t.Errorf("a file in a directory that is a mount point: got error %v, want none", got.dir)
	}
}

// BenchmarkLookForReplacedFiles measures how long a transaction takes to check
// whether the files of the database were replaced.
func BenchmarkLookForReplacedFiles(b *testing.B) {
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "test.db"), Options{Create: true, Normal: true})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Insert(b.Context(), commandTrue, now()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := errors.Join(d.Replaced(), d.engine.Committed(true)); err != nil {
			b.Fatal(err)
		}
	}
}
