package supervisor

import (
	"errors"
	"fmt"
	"io"
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

// Guardian is the worker's end of a guardian process. Its methods are safe for use by many goroutines.
type Guardian struct {
	options  GuardianOptions
	process  *os.Process
	socket   *net.UnixConn
	unmarked string        // why it cannot mark processes; empty: it can
	closing  atomic.Bool   // Close was called
	done     chan struct{} // closed when its process and that of its command are dead

	pingsSent, lastPong atomic.Int64

	in      frameReader
	sending sync.Mutex

	mu      sync.Mutex
	child   *Child // asked for, and not ended; nil: none
	served  bool   // a command was started
	gone    bool   // nothing can be started any more
	retired bool   // it has processes that it cannot kill, and ends with them
	clean   bool   // it has ended, and no process of its command is left
}

// StartGuardian starts a guardian process and returns when it is ready. The error is ErrLost if somebody killed it meanwhile.
func StartGuardian(o GuardianOptions) (*Guardian, error) {
	g := &Guardian{options: o, done: make(chan struct{})}
	if err := g.launch(); err != nil {
		return nil, fmt.Errorf("start the guardian: %w", err)
	}
	if err := g.hello(); err != nil {
		_ = g.process.Kill() // it may be dead
		if state, _ := g.process.Wait(); errors.Is(err, io.EOF) && killed(state) {
			err = fmt.Errorf("%w: it was killed", ErrLost)
		}
		ownChildren.Delete(g.process.Pid)
		g.removeCgroup()
		_ = g.socket.Close()
		return nil, fmt.Errorf("start the guardian: %w", err)
	}
	go g.receive()
	return g, nil
}

// killed says whether a process was ended by SIGKILL. A signal does not change how a process has ended that is about to exit.
func killed(state *os.ProcessState) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
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
	g.socket = conn.(*net.UnixConn) // as it was made
	path := g.options.Path
	if path == "" {
		path = "/proc/self/exe" // the program that runs, even if another has been put in its place
	}
	startMu.RLock()
	defer startMu.RUnlock()
	g.process, err = os.StartProcess(path, []string{os.Args[0], guardianArg, g.options.Worker, strconv.Itoa(g.options.Slot)}, &os.ProcAttr{Dir: "/", Env: []string{},
		Files: []*os.File{null, null, os.Stderr, theirs, g.options.Lock.file}, Sys: &unix.SysProcAttr{Setsid: true}})
	if err != nil {
		_ = g.socket.Close()
		return err
	}
	ownChildren.Store(g.process.Pid, true)
	return nil
}

// hello reads the first message, which tells that the process is a guardian of this version.
func (g *Guardian) hello() error {
	if err := g.socket.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return err
	}
	var r reply
	switch err := g.in.next(g.socket, &r); {
	case errors.Is(err, errFrame):
		return fmt.Errorf("it is of another version than %q", g.options.Version)
	case err != nil:
		return fmt.Errorf("it said no hello, does its main begin with runner.Guardian? %w", err)
	}
	if r.Op != opHello || r.Protocol != protocol || r.Version != g.options.Version {
		return fmt.Errorf("it is of version %q, protocol %d, not %q, %d", r.Version, r.Protocol, g.options.Version, protocol)
	}
	g.unmarked = r.Reason
	return g.socket.SetReadDeadline(time.Time{})
}

// receive hands replies on until the guardian is gone, and sees to what it leaves then.
func (g *Guardian) receive() {
	for {
		var r reply
		if g.in.next(g.socket, &r) != nil || !g.handle(r) {
			break
		}
	}
	_ = g.process.Kill() // it may be dead; what no longer talks must not start anything
	state, err := g.process.Wait()
	ownChildren.Delete(g.process.Pid)
	_ = g.socket.Close()
	g.mu.Lock()
	g.gone = true
	g.mu.Unlock()
	clean, denied := err == nil && state.Success(), []MarkedProcess(nil)
	if !clean {
		denied, clean = g.killLeftOvers()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clean = clean
	if c := g.child; c != nil {
		g.child = nil
		c.exit.Denied, c.err = denied, ErrLost
		close(c.ended)
		c.deliver(reply{Op: opExited}) // unless it was started
	}
	close(g.done)
}

// killLeftOvers kills what the dead guardian has left, and returns when there is nothing, or when Close gives up. It looks at the attempt of this
// guardian alone.
func (g *Guardian) killLeftOvers() (denied []MarkedProcess, clean bool) {
	defer g.removeCgroup()
	lock, slot := g.options.Lock, g.options.Slot
	for record, ok := lock.record(slot); ok; {
		if g.options.Adopt {
			killAdopted()
		}
		if denied, clean = Sweep(g.options.Worker, []Key{record.Key}, []Record{record}); clean {
			_ = lock.setRecord(slot, Key{}) // of the next guardian in this slot
			return denied, true
		}
		if g.closing.Load() {
			return denied, false // the record stays, and whoever takes the lock sweeps again
		}
	}
	return nil, true
}

func (g *Guardian) removeCgroup() {
	if dir := g.options.Lock.cgroupDir(g.options.Slot); dir != "" {
		killCgroup(dir)
		removeCgroup(dir)
	}
}

// handle hands a reply on. It returns false for one that no guardian sends.
func (g *Guardian) handle(r reply) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.child
	switch {
	case r.Op == opPong:
		g.lastPong.Store(r.N)
	case c == nil || c.key != r.Key:
		return false
	case r.Op == opStarted:
		g.served = true
		return c.deliver(r)
	case r.Op == opRefused:
		g.child = nil
		return c.deliver(r)
	case r.Op == opExited && r.Exit != nil:
		g.child = nil
		g.served = true
		g.retired = len(r.Exit.Denied) > 0
		g.gone = g.retired
		c.exit = *r.Exit
		if r.EndedBy == byDeadline {
			c.err = ErrDeadline
		}
		close(c.ended)
		c.deliver(r) // unless it was started
	default:
		return false
	}
	return true
}

// send writes a message whole, and the descriptors with its first byte. A guardian that does not take it is killed.
func (g *Guardian) send(r request, rights []byte) error {
	text, err := encode(&r)
	if err != nil {
		return unix.E2BIG
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
		_ = g.process.Kill() // half a message cannot be taken back
	}
	return err
}

// Renew moves the deadline of the guardian's command, if it is one of keys.
func (g *Guardian) Renew(keys []Key, deadline time.Time) {
	g.mu.Lock()
	c := g.child
	g.mu.Unlock()
	if c != nil && slices.Contains(keys, c.key) {
		_ = g.send(request{Op: opRenew, Key: c.key, Deadline: clockAt(deadline)}, nil) // else it is dead, and the command with it
	}
}

// Ping asks for a sign of life. A guardian that has not answered the last two is stuck: it is killed.
func (g *Guardian) Ping() {
	if g.pingsSent.Load()-g.lastPong.Load() >= 2 {
		_ = g.process.Kill() // the end of its socket tells the rest
		return
	}
	_ = g.send(request{Op: opPing, N: g.pingsSent.Add(1)}, nil)
}

// Pid returns the guardian's process id.
func (g *Guardian) Pid() int { return g.process.Pid }

// Done is closed when the guardian is dead and nothing of its command is left: then that has ended with ErrLost.
func (g *Guardian) Done() <-chan struct{} { return g.done }

// Idle says whether the guardian can start a command.
func (g *Guardian) Idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.gone && g.child == nil
}

// Served says whether the guardian has ever started a command.
func (g *Guardian) Served() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.served
}

// EndExpected says whether the end of the guardian is no surprise: it was closed, or it could not kill all that its command has left.
func (g *Guardian) EndExpected() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.retired || g.closing.Load()
}

// Unmarked returns why the guardian cannot mark processes, if it cannot: then what outlives it and its worker is not found.
func (g *Guardian) Unmarked() string { return g.unmarked }

// Close makes the guardian kill what is left and end, and returns when it has. A guardian that does not is killed.
func (g *Guardian) Close() error {
	g.closing.Store(true)
	_ = g.send(request{Op: opBye}, nil) // it may be dead
	select {
	case <-g.done:
	case <-time.After(closeTimeout):
		_ = g.process.Kill()
		<-g.done
	}
	if !g.clean { // set before done was closed
		return errors.New("processes of commands do not die")
	}
	return nil
}

// clockAt returns a time as CLOCK_MONOTONIC. The clock is read first: if this process is stopped in between, the result is too
// early, and never too late.
func clockAt(t time.Time) int64 {
	at := monotonic()
	return at + int64(time.Until(t))
}
