package supervisor

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestEveryByteOfCommandArrives(t *testing.T) {
	g, _ := startGuardian(t)
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	dir := filepath.Join(t.TempDir(), "\xff")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	word, long := string(all[1:]), strings.Repeat("x", 100_000)
	c := Command{Path: "/bin/sh", Argv: []string{"sh", "-c", `printf %s "$PWD" "$1" "$2" "$3" "$V" "${#L}"`, "sh", word, "", "c"},
		Env: []string{"V=" + word, "L=" + long}, Dir: dir, Stdout: out}
	child, err := g.start(c, Key{1 << 60, -2}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	exit, err := waitChild(t, child)
	if err != nil || exit.Code != 0 {
		t.Errorf("got %+v, error %v; want exit status 0", exit, err)
	}
	got, err := os.ReadFile(out.Name())
	if want := dir + word + "c" + word + "100000"; err != nil || string(got) != want {
		t.Errorf("got %q, error %v; want %q", got, err, want)
	}
	c.Argv = []string{"sh", "-c", "exit\x00"}
	if _, err := g.start(c, Key{1, 1}, time.Now().Add(time.Hour)); err == nil {
		t.Error("an argument with NUL: got no error, want one")
	}
}

// messages adds valid messages as seeds for fuzzing.
func messages(f *testing.F) {
	f.Helper()
	long := slices.Concat([]byte("/bin/true\x00/\x00true\x00\xff\x00"), bytes.Repeat([]byte("x"), 1<<16))
	for _, m := range []any{
		&request{Op: opStart, Key: Key{1, 2}, Words: long, Args: 2, Deadline: 1 << 60},
		&request{Op: opRenew, Key: Key{1, 2}, Deadline: -1},
		&request{Op: opKill, Key: Key{1, 2}, Signal: 15},
		&request{Op: opRenew, N: -1},
		&request{Op: opBye},
		&request{Op: "none"},
		&reply{Op: opHello, Version: "x"},
		&reply{Op: opRefused, Key: Key{1, 2}, Reason: reasonExec, Errno: 2},
		&reply{Op: opExited, Key: Key{1, 2}, Late: true, Exit: &Exit{Signal: 9}},
		&reply{Op: opExited, Key: Key{1, 2}},
		&reply{Op: opPong, N: 1 << 62},
	} {
		text, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(append(text, text...))
		f.Add(append(bytes.Clone(text), text[:len(text)/2]...))
	}
	f.Add([]byte(`{"Op":"start","Words":"","Args":1000}`))
	f.Add([]byte(`{"Op":"start","Words":"AAA=","Args":-1}`))
	f.Add([]byte("null{}[]"))
}

// FuzzRequests sends arbitrary data to a guardian. The guardian reads it to the
// end, or to the first invalid message, and then exits.
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
			g.attempt.words() // must not panic
			closeAll(g.attempt.files)
		}
	})
}

// FuzzReplies sends arbitrary data to a worker. The worker handles each valid
// reply of a guardian once, and stops at the first invalid one.
func FuzzReplies(f *testing.F) {
	messages(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Child{key: Key{1, 2}, ended: make(chan struct{})}
		g := &Guardian{pool: &Guardians{}, child: c}
		for in := json.NewDecoder(bytes.NewReader(data)); ; {
			var message reply
			if in.Decode(&message) != nil || !g.handle(message) {
				break
			}
		}
	})
}
