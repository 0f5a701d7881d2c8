package supervisor

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOnlyWritingEndOfPipeBlocks checks the pipe of a command. Programs expect
// that a write blocks. A read must not block, because a deadline has to end it.
func TestOnlyWritingEndOfPipeBlocks(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	g, _ := startGuardian(t)
	if _, err := startAndWait(t, g, Command{Path: "/bin/true", Argv: []string{"true"}, Stdout: w}, time.Hour); err != nil {
		t.Fatal(err)
	}
	raw, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	_ = raw.Control(func(fd uintptr) { flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0) })
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("flags of the write end: got %#x, error %v; want no O_NONBLOCK", flags, err)
	}
	for _, f := range []*os.File{r, w} {
		raw, err := f.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) {
			if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("descriptor flags: got %#x, error %v; want FD_CLOEXEC", flags, err)
			}
		})
	}
	if err := r.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got error %v, want %v", err, os.ErrDeadlineExceeded)
	}
}
