package process

import (
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// forkers is how many threads start commands: one is not enough for two processors.
const forkers = 2

// Descriptors of a guardian beside 0 to 2.
const (
	socketFD = 3
	lockFD   = 4
)

// Guard is the hook that a program calls first in main. It returns false at once, unless this process was started to be a guardian:
// then it is one, and returns true when its worker is gone and no process of a command is left. version must be the worker's.
func Guard(version string) bool {
	if len(os.Args) != 3 || os.Args[1] != guardianWord {
		return false
	}
	if name, err := unix.Getsockname(socketFD); err != nil {
		return false
	} else if _, ok := name.(*unix.SockaddrUnix); !ok {
		return false
	}
	sealDescriptors() // those of the launching environment, too: commands must not get them
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
	if err != nil || !ok {
		return true
	}
	g := newGuardian(os.Args[2], lock)
	g.send(reply{Op: opHello, Protocol: protocol, Version: version, Pid: os.Getpid()})
	g.serve(socket)
	_ = lock.setMark(Clean)
	_ = lock.forget()
	_ = lock.Close() // never LOCK_UN: the worker may still hold it
	_ = socket.Close()
	return true
}

// guardian is the state of a guardian process.
type guardian struct {
	worker string
	lock   *Lock
	out    outbox
	over   chan struct{} // closed when no child is left after the end of the worker
	once   sync.Once

	mu        sync.Mutex
	change    sync.Cond // a birth, something to bear, or the end
	queue     []*ward   // to be born
	bearing   map[*birth]bool
	births    int            // so far
	wards     map[Key]*ward  // asked for, and not yet reported to have ended
	leaders   map[int]*ward  // alive, or not yet waited for
	sessions  map[int]*ward  // by their leader, until the attempt is over
	ending    map[*ward]bool // their leaders have ended
	orphans   map[int]*ward  // killed, and not yet waited for
	strangers map[int]bool   // of other users, and told of
	opaque    map[int]int64  // orphans that showed no environment at the last look, and since when
	soon      bool           // a look for their sake is to come
	slots     []bool         // of records in the lock file
	stopping  bool           // the worker is gone
	dirty     bool           // the mark is
	forkers   []int          // their threads
}

// birth is the start of a command that is under way.
type birth struct {
	over  chan struct{}  // closed when it is
	early map[int]*death // of children that ended unrecognised meanwhile: one may be the child itself
}

// ward is one command.
type ward struct {
	Key
	start    request
	files    []int
	deadline int64 // CLOCK_MONOTONIC, ns
	timer    *time.Timer
	doomed   bool // killed before it was born
	by       string
	pid      int
	slot     int
	leftOver int
	death    *death
}

// death is how a child ended.
type death struct {
	status unix.WaitStatus
	usage  unix.Rusage
}

func newGuardian(worker string, lock *Lock) *guardian {
	g := &guardian{worker: worker, lock: lock, over: make(chan struct{}), bearing: map[*birth]bool{}, wards: map[Key]*ward{},
		leaders: map[int]*ward{}, sessions: map[int]*ward{}, ending: map[*ward]bool{}, orphans: map[int]*ward{}, strangers: map[int]bool{}}
	g.change.L = &g.mu
	g.out.filled.L = &g.out.mu
	return g
}

// serve runs the loops and returns when the worker is gone and all is dead.
func (g *guardian) serve(socket *net.UnixConn) {
	go g.out.drain(socket)
	for range forkers {
		offMain(g.fork)
	}
	go g.reap()
	_ = g.read(socket) // however it ends, it means that there is no worker any more
	g.stop()
	<-g.over
}

// offMain runs f on a thread of its own that is not the main one.
func offMain(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			offMain(f)
			select {}
		}
		f()
	}()
}

// read takes requests until the socket ends, the worker says goodbye, or something is not understood.
func (g *guardian) read(socket *net.UnixConn) error {
	oob := make([]byte, unix.CmsgSpace(3*4))
	for {
		var r request
		files, whole, err := receive(socket, oob, &r)
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
			g.renew(r.Keys, r.Deadline)
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

// take queues a command to be started; false if there is one with its key.
func (g *guardian) take(r request, files []int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wards[r.Key] != nil {
		return false
	}
	w := &ward{Key: r.Key, start: r, files: files, deadline: r.Deadline, by: bySelf}
	w.timer = time.AfterFunc(time.Duration(w.deadline-monotonic()), func() { g.expire(w) })
	g.wards[r.Key] = w
	g.queue = append(g.queue, w)
	g.change.Broadcast()
	return true
}

// fork starts commands, one at a time, on a thread that lives for as long as the process.
func (g *guardian) fork() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forkers = append(g.forkers, unix.Gettid())
	for {
		for len(g.queue) == 0 {
			g.change.Wait()
		}
		w := g.queue[0]
		g.queue = g.queue[1:]
		g.bear(w)
		closeAll(w.files)
		w.start, w.files = request{}, nil
	}
}

// bear starts one command, unless it is too late. It gives up the mutex for as long as that takes.
func (g *guardian) bear(w *ward) {
	refuse := func(r reply) {
		r.Op, r.Key = opRefused, w.Key
		w.timer.Stop()
		delete(g.wards, w.Key)
		g.send(r)
	}
	switch {
	case g.stopping || w.doomed:
		refuse(reply{Why: whyStopping})
		return
	case monotonic() >= w.deadline:
		refuse(reply{Why: whyLate})
		return
	}
	if !g.dirty {
		if err := g.lock.setMark(Dirty); err != nil { // whoever finds the lock must know
			refuse(reply{Why: whyExec, Errno: int(unix.ENOSPC)})
			return
		}
		g.dirty = true
	}
	b := &birth{over: make(chan struct{}), early: map[int]*death{}}
	g.bearing[b] = true
	g.mu.Unlock()
	pid, err := spawn(w)
	g.mu.Lock()
	close(b.over)
	delete(g.bearing, b)
	g.births++
	g.change.Broadcast()
	if err != nil {
		errno := syscall.EIO
		errors.As(err, &errno)
		refuse(reply{Why: whyExec, Errno: int(errno)})
		return
	}
	w.pid = pid
	g.leaders[pid], g.sessions[pid] = w, w
	w.slot = g.slot()
	_ = g.lock.setRecord(w.slot, Record{w.Key, pid, started(pid)}) // without it the environment tells
	g.send(reply{Op: opStarted, Key: w.Key, Pid: pid})
	switch {
	case b.early[pid] != nil:
		g.ended(w, b.early[pid])
		g.settle()
	case g.stopping:
		g.killAll()
	case w.doomed || monotonic() >= w.deadline:
		g.killWard(w)
	}
}

// spawn starts the leader, in a session of its own. It dies with this thread, that is, with the guardian.
func spawn(w *ward) (int, error) {
	attr := &syscall.ProcAttr{Dir: string(w.start.Dir), Env: texts(w.start.Env), Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}
	for _, fd := range w.files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	for {
		pid, err := syscall.ForkExec(string(w.start.Path), texts(w.start.Argv), attr)
		if err != syscall.EINTR { // exec and chdir are interrupted on some network and user-space file systems
			return pid, err
		}
	}
}

func texts(list [][]byte) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = string(text)
	}
	return out
}

// slot returns a free place for a record.
func (g *guardian) slot() int {
	for i, used := range g.slots {
		if !used {
			g.slots[i] = true
			return i
		}
	}
	g.slots = append(g.slots, true)
	return len(g.slots) - 1
}

func (g *guardian) renew(keys []Key, deadline int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range keys {
		if w := g.wards[key]; w != nil {
			w.deadline = deadline
			w.timer.Reset(time.Duration(deadline - monotonic()))
		}
	}
}

// expire kills a command whose deadline has passed.
func (g *guardian) expire(w *ward) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.wards[w.Key] != w || g.ending[w] || monotonic() < w.deadline { // over, or renewed
		return
	}
	w.by = byDeadline
	g.killWard(w)
}

// kill signals a command as asked.
func (g *guardian) kill(r request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.wards[r.Key]
	if w == nil || g.ending[w] {
		return
	}
	if w.by == bySelf {
		w.by = byKill
	}
	if g.leaders[w.pid] != w || r.Signal == int(unix.SIGKILL) {
		g.killWard(w)
		return
	}
	_ = signalGroup(w.pid, unix.Signal(r.Signal)) // of another user: it ends by itself, or never
	_ = signalGroup(w.pid, unix.SIGCONT)          // a stopped process would not see the other one
	if r.After > 0 {
		time.AfterFunc(time.Duration(r.After)*time.Millisecond, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.wards[w.Key] == w {
				g.killWard(w)
			}
		})
	}
}

// stop begins the end: nothing is started any more, and all is killed.
func (g *guardian) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopping = true
	g.change.Broadcast()
	g.killAll()
}

func (g *guardian) send(r reply) {
	if text, err := frame(r); err == nil {
		g.out.put(text)
	}
}

// outbox is a queue of frames without a limit.
type outbox struct {
	mu     sync.Mutex
	filled sync.Cond
	frames [][]byte
}

func (o *outbox) put(text []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frames = append(o.frames, text)
	o.filled.Signal()
}

// drain writes what is put, until nobody reads it any more.
func (o *outbox) drain(w io.Writer) {
	for {
		o.mu.Lock()
		for len(o.frames) == 0 {
			o.filled.Wait()
		}
		frames := o.frames
		o.frames = nil
		o.mu.Unlock()
		for _, text := range frames {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	}
}

// monotonic reads CLOCK_MONOTONIC, in ns: the one clock that worker and guardian share, and nobody can set.
func monotonic() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // cannot fail
	return at.Nano()
}
