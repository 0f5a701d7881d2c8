package supervisor

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// This file is a guardian's process, except for the attempts themselves
// (attempt_linux.go). Three parts run at the same time: the main thread runs
// the attempts, a goroutine reads the worker's requests, and timers fire at
// deadlines. A request must never wait for an attempt, because kills and
// renewals arrive while it runs.
//
// Invariants:
//   - The mutex is held while a signal is sent and while a child is reaped. A
//     child that isn't reaped keeps its pid, so no signal can hit a process
//     that has reused it.
//   - Nobody writes to the socket while holding the mutex. A write blocks while
//     the worker is stopped, and the deadline's timer needs the mutex.
//   - A renewal and a kill contain the key of their attempt. After its end they
//     change nothing.
//   - If the socket is closed, or a message is invalid or of a newer version,
//     read returns and the guardian ends: it starts no more commands and kills
//     every process.

// These are the descriptors of a guardian besides 0, 1 and 2.
const (
	socketFD = 3
	lockFD   = 4
)

// Guard is the hook that a program calls first in main. It returns false at
// once unless a worker started this process as a guardian. In a guardian it
// returns true when the worker is gone and no process of a command is left. The
// version must equal the worker's.
func Guard(version string) bool {
	if len(os.Args) != 4 || os.Args[1] != guardianArg {
		return false
	}
	if name, err := unix.Getsockname(socketFD); err != nil {
		return false
	} else if _, ok := name.(*unix.SockaddrUnix); !ok {
		return false
	}

	// A guardian has little to do, and a machine may run many.
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	// Commands get Pdeathsig when the thread that forked them ends. This one
	// lives as long as the process.
	runtime.LockOSThread()
	// Commands must not inherit what the worker may have inherited.
	setCloseOnExec()
	// Only the worker decides when the work ends, so the guardian catches these
	// signals. Commands would inherit ignored ones.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	// With a name unlike the worker's, pkill of the program spares guardians.
	_ = os.WriteFile("/proc/self/comm", []byte("guardian"), 0)
	// The orphans of commands become children of this process (Linux 3.4).
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	// Commands of the same user can't read this process's memory.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)

	lock := lockOf(os.NewFile(lockFD, "lock"), "lock") // a guardian doesn't use the path
	slot, bad := strconv.Atoi(os.Args[3])
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil || bad != nil {
		return true
	}

	g := newGuardian(os.Args[2], slot, lock, socketFD)
	g.wake = wake
	g.makeCgroup()
	g.send(&reply{Op: opHello, Version: version})
	go func() {
		// Whatever the reason that read returns, the worker counts as gone.
		_ = g.read()
		g.stop()
	}()
	g.run()

	g.closeCgroup()
	_ = lock.Close() // without LOCK_UN, because the worker may still hold the lock
	unix.Close(socketFD)
	return true
}

// setCloseOnExec sets all descriptors above 2 to close on exec. Go does so for
// the files that it opens. But a command would inherit descriptors that this
// process inherited or received from other code. If it got the liveness lock,
// the lock wouldn't be free after the end of the worker.
func setCloseOnExec() {
	// With this flag, close_range fails before Linux 5.11, or if a filter
	// denies it.
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil {
		setListedCloseOnExec()
	}
}

type guardian struct {
	worker      string
	slot        int // of its record in the lock file
	lock        *Lock
	socket      int
	cgroupDir   string // its cgroup's directory; empty if there is none
	cgroupFD    int
	cgroupSpent bool // whether it was killed or has limits, so the next command needs another; under mu
	wake        int  // eventfd that wakes the forking thread, for each start and for the shutdown

	sending sync.Mutex

	mu       sync.Mutex // held while sending signals and while reaping a child
	attempt  *attempt   // what runs now; nil while the guardian is idle
	timer    *time.Timer
	stopping bool // whether the worker is gone
	left     bool // whether the command has left processes behind, which must live on
}

// attempt is one command and all processes that it starts.
type attempt struct {
	request                // how it was started; a renewal moves Deadline
	files    []int         // descriptors 0, 1 and 2 of the command
	exit     Exit          // how it ended
	killed   bool          // whether KILL was sent, or must be sent after the start
	termSent bool          // whether TERM was sent, or must be sent after the start
	late     bool          // whether it was killed because its deadline had passed
	leader   int           // pid; 0 before the start
	pidfd    int           // of the leader; -1 if the kernel has no pidfds
	ended    bool          // whether the leader has ended
	over     chan struct{} // closed when the attempt is over
}

// isStopped reports whether a signal was sent to end the command.
func (a *attempt) isStopped() bool { return a.killed || a.termSent || a.late }

func newGuardian(worker string, slot int, lock *Lock, socket int) *guardian {
	g := &guardian{worker: worker, slot: slot, lock: lock, socket: socket, wake: -1}
	g.timer = time.AfterFunc(math.MaxInt64, g.expire)
	return g
}

// read handles requests until the socket ends, the worker says goodbye, or a
// request is invalid.
func (g *guardian) read() error {
	socket := &socketReader{socket: g.socket, oob: make([]byte, unix.CmsgSpace(3*4))}
	defer func() { closeAll(socket.files) }()

	for in := json.NewDecoder(socket); ; {
		var r request
		if err := in.Decode(&r); err != nil {
			return err
		}

		switch r.Op {
		case opStart:
			files, lost := socket.files, socket.lost
			socket.files, socket.lost = nil, false
			if lost { // the worker may try again later
				closeAll(files)
				g.send(&reply{Op: opRefused, Key: r.Key, Reason: reasonExec, Errno: int(unix.EMFILE)})
			} else if !g.accept(r, files) {
				closeAll(files)
				return errors.New("invalid start request")
			}
		case opRenew:
			g.renew(r.Key, r.Deadline)
			g.send(&reply{Op: opPong, N: r.N})
		case opKill:
			g.kill(r)
		default: // opBye, or an operation that this version doesn't know
			return nil
		}
	}
}

// socketReader reads from the worker. A read ends at the byte that carries
// descriptors, so it never returns those of two messages. The worker sends no
// start before it has the reply to the previous one, so files belong to the
// next start message.
type socketReader struct {
	socket int
	oob    []byte
	files  []int // came with the first byte of a start message
	lost   bool  // whether the kernel dropped descriptors because this process has too many
}

func (in *socketReader) Read(p []byte) (int, error) {
	for {
		awaitReadable(in.socket)
		n, nOOB, flags, _, err := unix.Recvmsg(in.socket, p, in.oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case nOOB > 0 || flags&unix.MSG_CTRUNC != 0:
			closeAll(in.files)
			in.files, in.lost = descriptors(in.oob[:nOOB]), flags&unix.MSG_CTRUNC != 0
		}

		if n == 0 {
			return 0, io.EOF
		}

		return n, nil
	}
}

// descriptors returns the descriptors that came with a message. They are set to
// close on exec.
func descriptors(oob []byte) []int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil
	}
	files, _ := unix.ParseUnixRights(&messages[0])
	return files
}

func closeAll(files []int) {
	for _, fd := range files {
		unix.Close(fd)
	}
}

// accept passes a command to the forking thread. It returns false if the
// guardian already has one or the request is invalid.
func (g *guardian) accept(r request, files []int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.attempt != nil || len(files) != 3 || r.Args < 1 || bytes.Count(r.Words, []byte{0}) < 1+r.Args {
		return false
	}

	g.attempt = &attempt{request: r, files: files, over: make(chan struct{})}
	g.setTimer()
	g.wakeUp()
	return true
}

// wakeUp lets the forking thread look for an attempt. That thread polls a
// descriptor, because it can't poll a channel.
func (g *guardian) wakeUp() {
	_, _ = unix.Write(g.wake, binary.NativeEndian.AppendUint64(nil, 1))
}

// setTimer makes the timer fire at the deadline of the attempt. The caller
// holds the mutex.
func (g *guardian) setTimer() { g.timer.Reset(time.Duration(g.attempt.Deadline - monotonic())) }

func (g *guardian) renew(k Key, deadline int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.attempt; a != nil && a.Key == k && !a.ended {
		a.Deadline = deadline
		g.setTimer()
	}
}

func (g *guardian) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()

	a := g.attempt
	if a == nil || a.ended {
		return
	}

	// Too early: the timer was set for an earlier attempt, or the worker has
	// renewed the lease since.
	if monotonic() < a.Deadline {
		g.setTimer()
		return
	}

	a.late, a.killed = true, true
	g.killAll()
}

func (g *guardian) kill(r request) {
	g.mu.Lock()
	defer g.mu.Unlock()

	a := g.attempt
	switch {
	case a == nil || a.Key != r.Key || a.ended:
	case r.Signal == int(unix.SIGKILL):
		a.killed = true
		g.killAll()
	case !a.termSent:
		a.termSent = true
		if a.leader != 0 {
			a.terminate()
		}
	}
}

// terminate sends TERM to the leader's process group, and CONT, because a
// stopped process handles TERM only then. Both fail for a process of another
// user, which the guardian can't ask to end.
func (a *attempt) terminate() {
	_ = signalGroup(a.leader, unix.SIGTERM)
	_ = signalGroup(a.leader, unix.SIGCONT)
}

// stop begins the shutdown. It prevents further starts and kills every process.
func (g *guardian) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	g.wakeUp()
	g.killAll()
}

// send writes a message to the worker. It blocks while the worker is stopped
// and reads nothing, so the caller must not hold the mutex.
func (g *guardian) send(r *reply) {
	text, err := json.Marshal(r)
	if err != nil {
		return
	}

	g.sending.Lock()
	defer g.sending.Unlock()

	for len(text) > 0 {
		n, err := unix.Write(g.socket, text)
		if err != nil && err != unix.EINTR {
			return // read notices that the worker is gone
		}
		text = text[max(n, 0):]
	}
}
