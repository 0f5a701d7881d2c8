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

// messages adds valid messages as seeds for fuzzing.
func messages(f *testing.F) {
	f.Helper()
	long := strings.Repeat("x", 1<<16)
	for _, m := range []message{
		&request{Op: opStart, Key: Key{1, 2}, Path: "/bin/true", Argv: []string{"\xff", ""}, Env: []string{long}, Deadline: 1 << 60},
		&request{Op: opRenew, Key: Key{1, 2}, Deadline: -1},
		&request{Op: opKill, Key: Key{1, 2}, Signal: 15, After: 1},
		&request{Op: opPing, N: -1},
		&request{Op: opBye},
		&request{Op: "none"},
		&reply{Op: opHello, Protocol: protocol, Version: "x", Pid: 7},
		&reply{Op: opStarted, Key: Key{1, 2}, Pid: 7},
		&reply{Op: opRefused, Key: Key{1, 2}, Reason: reasonExec, Errno: 2},
		&reply{Op: opExited, Key: Key{1, 2}, EndedBy: byDeadline, Exit: &Exit{Signal: 9}},
		&reply{Op: opExited, Key: Key{1, 2}},
		&reply{Op: opPong, N: 1 << 62},
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

// FuzzRequests sends arbitrary data to a guardian. The guardian reads it to the end, or to the first invalid message, and then
// exits.
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
		go func() { // the first byte of a start message carries the descriptors
			// the guardian may have closed the socket
			_, _, _ = socket.WriteMsgUnix(data[:min(1, len(data))], unix.UnixRights(0, 0, 0), nil)
			_, _ = socket.Write(data[min(1, len(data)):])
			socket.Close()
		}()
		g := newGuardian("w", 0, lock, pair[1]) // the test does not call run, so this guardian starts no command
		read := make(chan error, 1)
		go func() { read <- g.read() }()
		select {
		case <-read:
		case <-time.After(limit):
			t.Fatalf("got a read that has not returned %v after the socket was closed, want it to return", limit)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.timer.Stop()
		if g.attempt != nil {
			closeAll((<-g.starts).files)
		}
	})
}

// FuzzReplies sends arbitrary data to a worker. The worker handles each valid reply of a guardian once, and stops at the first
// invalid one.
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
