//go:build linux

package db

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestBackupReplacesRegularFilesOnly(t *testing.T) {
	d := openTest(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := os.Mkdir(at("dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	special := []string{"fifo", "socket", "dir", "to-fifo", "to-nothing", "to-itself"}
	// The test makes its own copy of /dev/null, because a bug could replace the
	// real device.
	if err := syscall.Mknod(at("null"), syscall.S_IFCHR|0o600, 1<<8|3); err == nil {
		special = append(special, "null", "to-null")
	} else if os.Getuid() == 0 {
		t.Errorf("root makes a device file: got error %v, want none", err)
	}
	for name, to := range map[string]string{"to-fifo": "fifo", "to-null": "null", "to-nothing": "nothing", "to-itself": "to-itself"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	modes := func() (list []os.FileMode) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			list = append(list, entry.Type())
		}
		return list
	}
	before := modes()
	for _, name := range special {
		for _, replace := range []bool{false, true} {
			if _, err := d.Backup(t.Context(), at(name), replace); !errors.Is(err, jobs.ErrConflict) {
				t.Errorf("%s, replace %v: got error %v, want one that is %v", name, replace, err, jobs.ErrConflict)
			}
		}
	}
	testkit.Equal(t, "types of the files", modes(), before)
	if err := os.Symlink("real", at("to-real")); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"real", "to-real"} { // a link to a regular file must stay a link
		if _, err := d.Backup(t.Context(), at(file), false); (err == nil) != (file == "real") {
			t.Errorf("%s: got error %v, want one only if the file exists", file, err)
		}
		if _, err := d.Backup(t.Context(), at(file), true); err != nil {
			t.Errorf("%s, replace: got error %v, want none", file, err)
		}
	}
	if to, err := os.Readlink(at("to-real")); to != "real" {
		t.Errorf("got a link to %q and error %v, want a link to real", to, err)
	}
}
