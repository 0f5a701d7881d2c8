package supervisor

import (
	"encoding/binary"
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

// Descriptors of a guardian beside 0 to 2.
const (
	socketFD = 3
	lockFD   = 4
)

// Guard is the hook that a program calls first in main. It returns false at once, unless this process was started to be a guardian:
// then it is one, and returns true when its worker is gone and no process of a command is left. version must be the worker's.
func Guard(version string) bool {
	if len(os.Args) != 4 || os.Args[1] != guardianArg {
		return false
	}
	if name, err := unix.Getsockname(socketFD); err != nil {
		return false
	} else if _, ok := name.(*unix.SockaddrUnix); !ok {
		return false
	}
	runtime.GOMAXPROCS(min(2, runtime.NumCPU())) // there may be many guardians, and each has little to do
	runtime.LockOSThread()                       // commands get Pdeathsig when the thread that forked them ends: this one lives as long as the process
	setCloseOnExec()                             // those of the launching environment, too: commands must not get them
	// Caught, not ignored: commands would inherit that. What is sent here is for the worker, which decides when all ends.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE)
	_ = os.WriteFile("/proc/self/comm", []byte("guardian"), 0)    // so that pkill of the program's name misses it
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)       // since Linux 3.4
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)              // commands read nothing of this process
	lock := &Lock{file: os.NewFile(lockFD, "lock"), path: "lock"} // the path is not needed here
	slot, bad := strconv.Atoi(os.Args[3])
	startEvent, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_SEMAPHORE)
	if err != nil || bad != nil {
		return true
	}
	g := newGuardian(os.Args[2], slot, lock, socketFD)
	g.startEvent = startEvent
	why := ""
	if err := errors.Join(SetMark(0, MarkOf(g.worker, Key{})), SetMark(0, g.originalMark)); err != nil {
		why = err.Error()
	}
	g.makeCgroup()
	g.send(&reply{Op: opHello, Protocol: protocol, Version: version, Pid: os.Getpid(), Reason: why})
	go func() {
		_ = g.read() // however it ends, it means that there is no worker any more
		g.stop()
	}()
	g.run()
	g.closeCgroup()
	_ = lock.Close() // never LOCK_UN: the worker may still hold it
	unix.Close(socketFD)
	return true
}

// guardian is the state of a guardian process.
type guardian struct {
	worker       string
	slot         int // of its record in the lock file
	lock         *Lock
	socket       int
	originalMark Mark   // its own limits
	cgroupDir    string // the directory of its cgroup; empty: it has none
	cgroupFD     int
	cgroupKilled bool            // the cgroup was killed; under mu
	starts       chan startOrder // closed when nothing is to be started any more
	startEvent   int             // an eventfd: the thread that starts commands waits for it, and not for the channel

	sending sync.Mutex

	mu       sync.Mutex // held while signalling, and while a child is waited for
	attempt  *attempt   // nil: idle
	timer    *time.Timer
	timerAt  int64 // when the timer fires, at the deadline of the attempt or before; 0: never
	stopping bool  // the worker is gone
}

// startOrder is a request to start a command, with its descriptors.
type startOrder struct {
	attempt *attempt
	request request
	files   []int
}

// attempt is one command and all that it starts.
type attempt struct {
	Key
	deadline int64  // CLOCK_MONOTONIC, ns
	endedBy  string // who has ended it
	killed   bool   // before or after it was started
	termSent bool   // to end, likewise
	leader   int    // 0: not started yet
	ended    bool   // its leader has
}

func newGuardian(worker string, slot int, lock *Lock, socket int) *guardian {
	g := &guardian{worker: worker, slot: slot, lock: lock, socket: socket, originalMark: readMark(0), starts: make(chan startOrder, 1), startEvent: -1}
	g.timer = time.AfterFunc(math.MaxInt64, g.expire)
	return g
}

// read takes requests until the socket ends, the worker says goodbye, or something is not understood.
func (g *guardian) read() error {
	in := requests{socket: g.socket, oob: make([]byte, unix.CmsgSpace(3*4))}
	defer func() { closeAll(in.files) }()
	for {
		var r request
		if err := in.next(&r); err != nil {
			return err
		}
		switch r.Op {
		case opStart:
			files, lost := in.files, in.lost
			in.files, in.lost = nil, false
			if lost { // this process may open no more; later there may be room
				closeAll(files)
				g.send(&reply{Op: opRefused, Key: r.Key, Reason: reasonExec, Errno: int(unix.EMFILE)})
			} else if files, ok := withNull(files, r.Null); !ok || !g.accept(r, files) {
				closeAll(files)
				return errors.New("bad start")
			}
		case opRenew:
			g.renew(r.Key, r.Deadline)
		case opKill:
			g.kill(r)
		case opPing:
			g.send(&reply{Op: opPong, N: r.N})
		default: // bye, and what is not known
			return nil
		}
	}
}

// requests reads what the worker sends.
type requests struct {
	frameReader
	socket int
	oob    []byte
	files  []int // descriptors that came with the first byte of a start
	lost   bool  // some of them, for want of room
}

// next reads a request. The kernel ends a read where descriptors have come, and a worker sends no second start before the answer to the
// first one: so files are those of the start that is read next.
func (in *requests) next(r *request) error {
	for {
		data, ok, err := in.nextFrame()
		switch {
		case err != nil:
			return err
		case ok:
			return decode(data, r)
		}
		awaitReadable(in.socket)
		n, nOOB, flags, _, err := unix.Recvmsg(in.socket, in.space(), in.oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		}
		if nOOB > 0 || flags&unix.MSG_CTRUNC != 0 {
			closeAll(in.files)
			in.files, in.lost = descriptors(in.oob[:nOOB]), flags&unix.MSG_CTRUNC != 0
		}
		if n == 0 {
			return io.EOF
		}
		in.advance(n)
	}
}

// withNull completes the descriptors 0, 1 and 2 of a command by the null device, which is descriptor 0 of a guardian.
func withNull(files []int, null int) (all []int, ok bool) {
	rest := files
	for i := range 3 {
		switch {
		case null&(1<<i) != 0:
			all = append(all, 0)
		case len(rest) == 0:
			return files, false
		default:
			all, rest = append(all, rest[0]), rest[1:]
		}
	}
	if len(rest) > 0 {
		return files, false
	}
	return all, true
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

// closeAll closes the descriptors of a command that are its own.
func closeAll(files []int) {
	for _, fd := range files {
		if fd > 0 {
			unix.Close(fd)
		}
	}
}

// accept hands a command to the thread that starts commands; false if one is there already.
func (g *guardian) accept(r request, files []int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.attempt != nil {
		return false
	}
	a := &attempt{Key: r.Key, deadline: r.Deadline, endedBy: bySelf}
	g.attempt = a
	g.setTimer()
	g.starts <- startOrder{a, r, files}
	g.notifyStart()
	return true
}

// notifyStart wakes the thread that starts commands.
func (g *guardian) notifyStart() {
	_, _ = unix.Write(g.startEvent, binary.NativeEndian.AppendUint64(nil, 1))
}

// setTimer sees to it that the timer fires at the deadline of the attempt or before. Most deadlines are later than that of the attempt before: then
// there is nothing to do. The mutex is held.
func (g *guardian) setTimer() {
	if at := g.attempt.deadline; g.timerAt == 0 || at < g.timerAt {
		g.timerAt = at
		g.timer.Reset(time.Duration(at - monotonic()))
	}
}

func (g *guardian) renew(k Key, deadline int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.attempt; a != nil && a.Key == k && !a.ended {
		a.deadline = deadline
		g.setTimer()
	}
}

// expire kills a command whose deadline has passed.
func (g *guardian) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timerAt = 0
	a := g.attempt
	if a == nil || a.ended {
		return
	}
	if monotonic() < a.deadline { // of another attempt than the one that the timer was set for, or renewed
		g.setTimer()
		return
	}
	a.endedBy, a.killed = byDeadline, true
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
	if a.endedBy == bySelf {
		a.endedBy = byKill
	}
	if r.Signal == int(unix.SIGKILL) {
		a.killed = true
		g.killAll()
		return
	}
	if a.termSent {
		return
	}
	a.termSent = true
	if a.leader != 0 {
		a.terminate()
	}
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

// terminate sends TERM to the group of the leader.
func (a *attempt) terminate() {
	_ = signalGroup(a.leader, unix.SIGTERM) // of another user: it ends by itself, or never
	_ = signalGroup(a.leader, unix.SIGCONT) // a stopped process would not see the other one
}

// stop begins the end: nothing is started any more, and all is killed.
func (g *guardian) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	close(g.starts)
	g.notifyStart()
	g.killAll()
}

// send writes a message to the worker. One that has been stopped reads nothing, and then this waits: so nobody sends with the mutex held.
func (g *guardian) send(r *reply) {
	text, err := encode(r)
	if err != nil {
		return
	}
	g.sending.Lock()
	defer g.sending.Unlock()
	for len(text) > 0 {
		n, err := unix.Write(g.socket, text)
		if err != nil && err != unix.EINTR {
			return // the end of the worker is noticed by the reader
		}
		text = text[max(n, 0):]
	}
}

// monotonic reads CLOCK_MONOTONIC, in ns: the one clock that worker and guardian share, and nobody can set.
func monotonic() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // cannot fail
	return at.Nano()
}
