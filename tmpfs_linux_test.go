package main

import (
	"errors"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"example.com/runner/test/testkit"
)

// mayMount implements the script condition "mount". It is true if this user may
// mount filesystems, which usually means root.
func mayMount() bool { return os.Getuid() == 0 }

// mountTmpfs implements the script command "tmpfs DIR SIZE". It mounts a tmpfs
// of that size on DIR until the script ends.
func mountTmpfs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tmpfs DIR SIZE")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(unix.Mount("runner-test", dir, "tmpfs", 0, "mode=700,size="+args[1]))
	ts.Defer(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// remount implements the script command "remount DIR ro|rw". It makes the
// filesystem on DIR read-only or writable.
func remount(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: remount DIR ro|rw")
	}
	flags := uintptr(unix.MS_REMOUNT)
	if args[1] == "ro" {
		flags |= unix.MS_RDONLY
	}
	err := error(unix.EBUSY)
	for end := time.Now().Add(testkit.Patience); errors.Is(err, unix.EBUSY) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		err = unix.Mount("", ts.MkAbs(args[0]), "", flags, "") // busy until killed processes have closed their files
	}
	ts.Check(err)
}
