package process

import (
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptors of a guardian beside 0 to 2.
const (
	socketFD = 3
	lockFD   = 4
)

// Guard is the hook that a program calls first in main. It returns false at once, unless this process was started to be a guardian:
// then it is one, and returns true when its worker is gone and no process of a command is left. version must be the worker's.
func Guard(version string) bool {
	if len(os.Args) != 4 || os.Args[1] != guardianWord {
		return false
	}
	if name, err := unix.Getsockname(socketFD); err != nil {
		return false
	} else if _, ok := name.(*unix.SockaddrUnix); !ok {
		return false
	}
	runtime.GOMAXPROCS(min(2, runtime.NumCPU())) // there may be many guardians, and each has little to do
	runtime.LockOSThread()                       // commands get Pdeathsig when the thread that forked them ends: this one lives as long as the process
	sealDescriptors()                            // those of the launching environment, too: commands must not get them
	// Caught, not ignored: commands would inherit that. What is sent here is for the worker, which decides when all ends.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	_ = os.WriteFile("/proc/self/comm", []byte("guardian"), 0)    // so that pkill of the program's name misses it
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)       // since Linux 3.4
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)              // commands read nothing of this process
	lock := &Lock{file: os.NewFile(lockFD, "lock"), path: "lock"} // the path is not needed here
	file := os.NewFile(socketFD, "worker")
	conn, err := net.FileConn(file) // has a descriptor of its own
	_ = file.Close()                // the file, not the number: its finalizer would close whatever has that later
	socket, ok := conn.(*net.UnixConn)
	slot, bad := strconv.Atoi(os.Args[3])
	if err != nil || !ok || bad != nil {
		return true
	}
	g := newGuardian(os.Args[2], slot, lock, socket)
	why := ""
	if err := errors.Join(SetMark(0, MarkOf(g.worker, Key{})), SetMark(0, g.unmarked)); err != nil {
		why = err.Error()
	}
	g.makeGroup()
	g.send(reply{Op: opHello, Protocol: protocol, Version: version, Pid: os.Getpid(), Why: why})
	go func() {
		_ = g.read() // however it ends, it means that there is no worker any more
		g.stop()
	}()
	g.run()
	g.leaveGroup()
	_ = lock.Close() // never LOCK_UN: the worker may still hold it
	_ = socket.Close()
	return true
}

// guardian is the state of a guardian process.
type guardian struct {
	worker   string
	slot     int // of its record in the lock file
	lock     *Lock
	socket   *net.UnixConn
	unmarked Mark   // its own limits
	group    string // the directory of its cgroup; empty: it has none
	groupFD  int
	spent    bool       // the cgroup was killed; under mu
	starts   chan order // closed when nothing is to be started any more

	mu       sync.Mutex // held while signalling, and while a child is waited for
	attempt  *attempt   // nil: idle
	stopping bool       // the worker is gone
}

// order is a request to start a command, with its descriptors.
type order struct {
	attempt *attempt
	request request
	files   []int
}

// attempt is one command and all that it starts.
type attempt struct {
	Key
	deadline int64 // CLOCK_MONOTONIC, ns
	timer    *time.Timer
	by       string // who has ended it
	killed   bool   // before or after it was started
	leader   int    // 0: not started yet
	ended    bool   // its leader has
}

func newGuardian(worker string, slot int, lock *Lock, socket *net.UnixConn) *guardian {
	return &guardian{worker: worker, slot: slot, lock: lock, socket: socket, unmarked: markOf(0), starts: make(chan order, 1)}
}

// read takes requests until the socket ends, the worker says goodbye, or something is not understood.
func (g *guardian) read() error {
	oob := make([]byte, unix.CmsgSpace(3*4))
	for {
		var r request
		files, whole, err := receive(g.socket, oob, &r)
		if err != nil {
			closeAll(files)
			return err
		}
		switch {
		case r.Op == opStart && !whole: // this process may open no more; later there may be room
			closeAll(files)
			g.send(reply{Op: opRefused, Key: r.Key, Why: whyExec, Errno: int(unix.EMFILE)})
			continue
		case r.Op == opStart && len(files) == 3 && g.take(r, files):
			continue
		}
		closeAll(files)
		switch r.Op {
		case opStart:
			return errors.New("bad start")
		case opRenew:
			g.renew(r.Key, r.Deadline)
		case opKill:
			g.kill(r)
		case opPing:
			g.send(reply{Op: opPong, N: r.N})
		default: // bye, and what is not known
			return nil
		}
	}
}

// receive reads a request and the descriptors that came with its first byte; whole: none of them was lost.
func receive(socket *net.UnixConn, oob []byte, r *request) (files []int, whole bool, err error) {
	var header [4]byte
	n, nOOB, flags, _, err := socket.ReadMsgUnix(header[:], oob)
	files, whole = descriptors(oob[:nOOB]), flags&unix.MSG_CTRUNC == 0
	switch {
	case err != nil:
		return files, whole, err
	case n == 0:
		return files, whole, io.EOF
	case n < len(header):
		if _, err := io.ReadFull(socket, header[n:]); err != nil {
			return files, whole, err
		}
	}
	return files, whole, readBody(socket, header, r)
}

// descriptors returns those that came with a message. They close on exec.
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

// take hands a command to the thread that starts commands; false if one is there already.
func (g *guardian) take(r request, files []int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.attempt != nil {
		return false
	}
	a := &attempt{Key: r.Key, deadline: r.Deadline, by: bySelf}
	a.timer = time.AfterFunc(time.Duration(a.deadline-monotonic()), func() { g.expire(a) })
	g.attempt = a
	g.starts <- order{a, r, files}
	return true
}

func (g *guardian) renew(k Key, deadline int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.attempt; a != nil && a.Key == k && !a.ended {
		a.deadline = deadline
		a.timer.Reset(time.Duration(deadline - monotonic()))
	}
}

// expire kills a command whose deadline has passed.
func (g *guardian) expire(a *attempt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.attempt != a || a.ended || monotonic() < a.deadline { // over, or renewed
		return
	}
	a.by, a.killed = byDeadline, true
	g.killAll()
}

// kill signals a command as asked.
func (g *guardian) kill(r request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.attempt
	if a == nil || a.Key != r.Key || a.ended {
		return
	}
	if a.by == bySelf {
		a.by = byKill
	}
	if a.leader == 0 || r.Signal == int(unix.SIGKILL) {
		a.killed = true
		g.killAll()
		return
	}
	_ = signalGroup(a.leader, unix.Signal(r.Signal)) // of another user: it ends by itself, or never
	_ = signalGroup(a.leader, unix.SIGCONT)          // a stopped process would not see the other one
	if r.After > 0 {
		time.AfterFunc(time.Duration(r.After)*time.Millisecond, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.attempt == a && !a.ended {
				a.killed = true
				g.killAll()
			}
		})
	}
}

// stop begins the end: nothing is started any more, and all is killed.
func (g *guardian) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	close(g.starts)
	g.killAll()
}

// send writes a message to the worker. One that has been stopped reads nothing, and then this waits: so nobody sends with the mutex held.
func (g *guardian) send(r reply) {
	if text, err := frame(r); err == nil {
		_, _ = g.socket.Write(text) // the end of the worker is noticed by the reader
	}
}

// monotonic reads CLOCK_MONOTONIC, in ns: the one clock that worker and guardian share, and nobody can set.
func monotonic() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // cannot fail
	return at.Nano()
}
