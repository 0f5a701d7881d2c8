package supervisor

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// messages are what fuzzing starts from.
func messages(f *testing.F) {
	f.Helper()
	long := strings.Repeat("x", 1<<16)
	for _, m := range []message{
		&request{Op: opStart, Key: Key{1, 2}, Path: "/bin/true", Argv: []string{"\xff", ""}, Env: []string{long}, Deadline: 1 << 60},
		&request{Op: opRenew, Key: Key{1, 2}, Deadline: -1}, &request{Op: opKill, Key: Key{1, 2}, Signal: 15, After: 1}, &request{Op: opPing, N: -1},
		&request{Op: opBye}, &request{Op: "none"},
		&reply{Op: opHello, Protocol: protocol, Version: "x", Pid: 7}, &reply{Op: opStarted, Key: Key{1, 2}, Pid: 7}, &reply{Op: opRefused, Key: Key{1, 2}, Reason: reasonExec, Errno: 2},
		&reply{Op: opExited, Key: Key{1, 2}, EndedBy: byDeadline, Exit: &Exit{Signal: 9}}, &reply{Op: opExited, Key: Key{1, 2}}, &reply{Op: opPong, N: 1 << 62},
	} {
		text, err := encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(append(text, text...))
		f.Add(append(bytes.Clone(text), text[:len(text)/2]...))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte("\x00\x00\x00\x04null\x00\x00\x00\x00"))
	f.Add(bytes.Repeat([]byte("\x00\x00\x00\x02{}"), 3))
}

// Whatever comes through the socket, a guardian reads to its end or to what it does not understand, and ends then.
func FuzzRequests(f *testing.F) {
	messages(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pair[1])
		file := os.NewFile(uintptr(pair[0]), "socket")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		socket := conn.(*net.UnixConn)
		defer socket.Close()
		lock, err := NewLock(filepath.Join(t.TempDir(), "x.lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		go func() { // the descriptors of a start are with its first byte
			_, _, _ = socket.WriteMsgUnix(data[:min(1, len(data))], unix.UnixRights(0, 0, 0), nil) // it may have read enough
			_, _ = socket.Write(data[min(1, len(data)):])
			socket.Close()
		}()
		g := newGuardian("w", 0, lock, pair[1]) // nothing is forked: that loop does not run
		read := make(chan error, 1)
		go func() { read <- g.read() }()
		select {
		case <-read:
		case <-time.After(limit):
			t.Fatal("it reads on")
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.timer.Stop()
		if g.attempt != nil {
			closeAll((<-g.starts).files)
		}
	})
}

// Whatever a guardian says, its worker hands on what it understands, once, or takes the guardian for broken.
func FuzzReplies(f *testing.F) {
	messages(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Child{key: Key{1, 2}, answer: make(chan reply, 2), ended: make(chan struct{})}
		g := &Guardian{child: c}
		for r := bytes.NewReader(data); ; {
			var message reply
			if g.in.next(r, &message) != nil || !g.handle(message) {
				break
			}
		}
	})
}
