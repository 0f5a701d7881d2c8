package supervisor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// This file is the worker's side: it starts a guardian, sends requests and
// handles replies. A Child is one command.
//
// All failures end in the same way. If a message can't be written in time, a
// reply is invalid or two renewals get no answer, the client kills the
// guardian. It doesn't try to repair the connection, because a guardian that
// has read part of a message can't read the next one. receive then waits for
// the guardian's end, kills the processes that it has left, and ends the
// command with ErrLost.
//
// Invariants:
//   - A guardian has one command at most: child is set from the request until
//     the reply that ends the command.
//   - done is closed after the guardian is dead and its left-over processes are
//     killed. After close, it may be closed while processes are left. The
//     record in the lock file then stays, so that another process finds them.
//   - The mutex isn't held while a message is sent.

// Guardian is a guardian process as its worker sees it.
type Guardian struct {
	pool    *Guardians
	slot    int // of its record in the lock file; no two living guardians of a worker share one
	process *os.Process
	socket  *net.UnixConn
	closing atomic.Bool   // whether close was called
	done    chan struct{} // closed when the guardian and its command are dead

	renewals atomic.Int64 // number of the last renewal
	lastPong atomic.Int64 // number of the last renewal that was answered

	in      *json.Decoder // reads from socket
	sending sync.Mutex

	// These fields are guarded by pool.mu.
	child     *Child // command that was requested and hasn't ended; nil if there is none
	served    bool   // whether the guardian has ever handled a command
	gone      bool   // whether the guardian can start no more commands
	retired   bool   // gone because of processes that it may not kill, or must leave alive
	clean     bool   // whether the guardian has exited and no process of its command is left
	idleSince time.Time
}

// startGuardian starts a guardian process and returns when it is ready. The
// error is ErrLost if the process was killed before.
func (p *Guardians) startGuardian(slot int) (*Guardian, error) {
	g := &Guardian{pool: p, slot: slot, done: make(chan struct{})}
	if err := g.launch(); err != nil {
		return nil, fmt.Errorf("start the guardian: %w", err)
	}

	if err := g.hello(); err != nil {
		state, failed := g.end()
		killed := failed == nil && state.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if errors.Is(err, io.EOF) && killed {
			err = fmt.Errorf("%w: it was killed", ErrLost)
		}
		g.removeCgroup()
		return nil, fmt.Errorf("start the guardian: %w", err)
	}

	go g.receive()
	return g, nil
}

// end kills the guardian, unless it has ended (a late signal doesn't change
// how), and returns how it ended.
func (g *Guardian) end() (*os.ProcessState, error) {
	_ = g.process.Kill()
	defer ownChildren.Delete(g.process.Pid)
	defer func() { _ = g.socket.Close() }()
	return g.process.Wait()
}

func (g *Guardian) launch() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}

	mine, theirs := os.NewFile(uintptr(pair[0]), "guardian"), os.NewFile(uintptr(pair[1]), "guardian")
	defer mine.Close()
	defer theirs.Close()

	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()

	conn, err := net.FileConn(mine)
	if err != nil {
		return err
	}

	g.socket = conn.(*net.UnixConn) // a unix socket pair has this type
	g.in = json.NewDecoder(g.socket)

	startMu.RLock()
	defer startMu.RUnlock()

	path := cmp.Or(g.pool.Path, "/proc/self/exe") // the running program, even if its file was replaced
	argv := []string{os.Args[0], guardianArg, g.pool.Worker, strconv.Itoa(g.slot)}
	g.process, err = os.StartProcess(path, argv, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{},
		Files: []*os.File{null, null, os.Stderr, theirs, g.pool.Lock.file},
		Sys:   &unix.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = g.socket.Close()
		if g.pool.Path == "" && errors.Is(err, fs.ErrNotExist) {
			return errors.New("/proc is not mounted; runner needs it: mount -t proc proc /proc")
		}
		return err
	}

	ownChildren.Store(g.process.Pid, true)
	return nil
}

// hello reads the first message, which proves that the process is a guardian of
// the same version.
func (g *Guardian) hello() error {
	if err := g.socket.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return err
	}

	var r reply
	if err := g.in.Decode(&r); err != nil {
		return fmt.Errorf("it sent no hello message: %w; does its main begin with commands.Guardian?", err)
	}
	if r.Op != opHello || r.Version != g.pool.Version {
		return fmt.Errorf("it has version %q, not %q", r.Version, g.pool.Version)
	}

	return g.socket.SetReadDeadline(time.Time{})
}

// receive handles replies until the guardian is gone, and then kills the
// processes that the guardian left.
func (g *Guardian) receive() {
	for {
		var r reply
		if g.in.Decode(&r) != nil || !g.handle(r) {
			break
		}
	}

	// A guardian that still lives has sent an invalid message, so it must not
	// start another command.
	state, err := g.end()

	g.pool.mu.Lock()
	g.gone = true
	g.pool.idle = slices.DeleteFunc(g.pool.idle, func(i *Guardian) bool { return i == g })
	g.served = g.served || g.pool.Lock.recordedKey(g.slot) != (Key{}) // it died with a command
	g.pool.mu.Unlock()

	clean := err == nil && state.Success() || g.killLeftOvers()

	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()

	g.clean = clean
	if g.child != nil {
		g.child.err = ErrLost
		g.endChild()
	}

	g.pool.remove(g)
	close(g.done)
}

// killLeftOvers kills the processes of the dead guardian's attempt, and returns
// when none is left. After close it tries only once.
func (g *Guardian) killLeftOvers() (clean bool) {
	for key := g.pool.Lock.recordedKey(g.slot); key != (Key{}); {
		g.removeCgroup()
		killAdopted(Mark{g.pool.Worker, key})
		if Sweep(g.pool.Worker, []Key{key}, g.pool.Lock.path) {
			_ = g.pool.Lock.setRecord(g.slot, Key{}) // clear the record for the next guardian in this slot
			break
		}
		if g.closing.Load() {
			return false // the record stays, so that whoever takes the lock next kills these processes
		}
	}

	g.removeCgroup()
	return true
}

func (g *Guardian) removeCgroup() {
	if dir := g.pool.Lock.cgroupDir(g.slot); dir != "" {
		killCgroup(dir)
		removeCgroup(dir)
	}
}

// handle handles a reply. It returns false for one that a guardian never sends.
func (g *Guardian) handle(r reply) bool {
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()

	c := g.child
	switch {
	case r.Op == opPong:
		g.lastPong.Store(r.N)
		return true
	case c == nil || c.key != r.Key:
		return false
	case r.Op == opRefused:
		c.err = r.failure()
	case r.Op == opExited && r.Exit != nil:
		g.retired = len(r.Exit.Denied) > 0 || r.Exit.Left > 0
		g.gone = g.retired
		c.exit = *r.Exit
		if r.Late {
			c.err = ErrDeadline
		}
	default:
		return false
	}

	g.served, g.pool.failures = true, 0
	g.endChild()
	g.pool.put(g)
	return true
}

// The caller holds the mutex.
func (g *Guardian) endChild() {
	close(g.child.ended)
	g.child = nil
}

// send writes a whole message, and the descriptors with its first byte. It
// kills a guardian that doesn't read the message in time.
func (g *Guardian) send(r request, rights []byte) error {
	text, err := json.Marshal(&r)
	if err != nil {
		return err
	}

	g.sending.Lock()
	defer g.sending.Unlock()

	err = g.socket.SetWriteDeadline(time.Now().Add(sendTimeout))
	if err == nil {
		var n int
		n, _, err = g.socket.WriteMsgUnix(text, rights, nil)
		if err == nil && n < len(text) {
			_, err = g.socket.Write(text[n:])
		}
	}
	if err != nil {
		_ = g.process.Kill() // it has part of a message, so it can't read another one
	}

	return err
}

// renew moves the deadline of the guardian's command if keys contains it. In
// any case it asks the guardian for a reply, and kills a guardian that hasn't
// answered the last two calls.
func (g *Guardian) renew(keys []Key, deadline time.Time) {
	if g.renewals.Load()-g.lastPong.Load() >= 2 {
		_ = g.process.Kill() // receive cleans up
		return
	}

	r := request{Op: opRenew, N: g.renewals.Add(1)}
	g.pool.mu.Lock()
	if c := g.child; c != nil && slices.Contains(keys, c.key) {
		r.Key, r.Deadline = c.key, clockAt(deadline)
	}

	g.pool.mu.Unlock()
	_ = g.send(r, nil) // if this fails, the guardian is dead, and so is the command
}

// close tells the guardian to kill what remains and exit, and waits for that.
// It kills a guardian that takes too long.
func (g *Guardian) close() error {
	g.closing.Store(true)
	_ = g.send(request{Op: opBye}, nil) // the guardian may be dead already
	select {
	case <-g.done:
	case <-time.After(closeTimeout):
		_ = g.process.Kill()
		<-g.done
	}

	if !g.clean { // no lock needed: receive sets clean before it closes done
		return errors.New("some processes of commands did not exit")
	}

	return nil
}
