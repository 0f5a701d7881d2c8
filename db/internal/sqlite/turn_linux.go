package sqlite

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A program that commits without a pause leaves the write lock free for some
// microseconds at a time, and a writer that tries at intervals misses them. So
// a writer that finds the lock taken sleeps in the kernel, which wakes it when
// the lock is released. It waits for an open file description lock on the byte
// of the -shm file that SQLite documents as the writer's lock
// (https://sqlite.org/walformat.html). Nothing in the file is read or mapped.

// turns is a descriptor of a -shm file, through which this process waits.
//
// Closing any descriptor of a file drops all POSIX locks that the process has
// on it, also those of an application's own connections. So one descriptor is
// shared by the whole process and stays open until the file has no name left:
// SQLite removes the file when the last connection of all processes closes.
type turns struct {
	fd    int // not an os.File, which the garbage collector would close
	users int // waits in progress; guarded by openTurns.mu

	mu      sync.Mutex
	waiters int       // goroutines that want the lock
	active  bool      // whether one goroutine waits in the kernel, or has the lock
	granted chan bool // gives the lock to a waiter; false: the filesystem has no such locks
}

var openTurns = struct {
	mu  sync.Mutex
	all map[fileID]*turns
}{all: map[fileID]*turns{}}

// awaitTurn sleeps until no connection has the write lock, or until the time is
// over. It returns false at once if it can't wait for this -shm file.
func awaitTurn(shared string, longest time.Duration) bool {
	x := turnsOf(shared)
	if x == nil {
		return false
	}
	defer x.leave()

	switch locked, over := x.await(longest); {
	case over:
		return true
	default:
		x.release()
		return locked
	}
}

// turnsOf returns nil if the file can't be opened for writing.
func turnsOf(path string) *turns {
	openTurns.mu.Lock()
	defer openTurns.mu.Unlock()

	found, err := statFile(path)
	if err != nil {
		return nil
	}
	if x := openTurns.all[found.id]; x != nil {
		x.users++
		return x
	}

	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}

	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil {
		return nil
	}

	x := &turns{fd: fd, users: 1, granted: make(chan bool, 1)}
	openTurns.all[fileID{uint64(stat.Dev), uint64(stat.Ino)}] = x
	return x
}

func (x *turns) leave() {
	openTurns.mu.Lock()
	defer openTurns.mu.Unlock()
	x.users--
}

// closeTurns closes the descriptors of files that SQLite has removed.
func closeTurns() {
	openTurns.mu.Lock()
	defer openTurns.mu.Unlock()

	for id, x := range openTurns.all {
		x.mu.Lock()
		idle := x.users == 0 && !x.active
		x.mu.Unlock()
		var stat unix.Stat_t
		if idle && unix.Fstat(x.fd, &stat) == nil && stat.Nlink == 0 {
			unix.Close(x.fd)
			delete(openTurns.all, id)
		}
	}
}

// await waits for the lock. If over is false, nobody else can take the lock
// until release, unless locked is false, too: then the kernel gave none.
//
// F_OFD_SETLKW has no timeout. So a goroutine waits, and gives the lock back at
// once if nobody wants it any more.
func (x *turns) await(longest time.Duration) (locked, over bool) {
	x.mu.Lock()
	x.waiters++
	if !x.active {
		x.active = true
		go x.block()
	}

	x.mu.Unlock()

	timer := time.NewTimer(longest)
	defer timer.Stop()

	select {
	case locked = <-x.granted:
		return locked, false
	case <-timer.C:
	}

	x.mu.Lock()
	defer x.mu.Unlock()

	select {
	case locked = <-x.granted:
		return locked, false
	default:
		x.waiters--
		return false, true
	}
}

func (x *turns) block() {
	err := x.lock(unix.F_OFD_SETLKW, unix.F_WRLCK)
	x.mu.Lock()
	if x.waiters > 0 {
		x.waiters--
		x.granted <- err == nil
		x.mu.Unlock()
		return
	}

	x.mu.Unlock()
	x.release()
}

// release gives back the lock, to the next waiter of this process if there is
// one.
func (x *turns) release() {
	_ = x.lock(unix.F_OFD_SETLK, unix.F_UNLCK)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.active = x.waiters > 0; x.active {
		go x.block()
	}
}

func (x *turns) lock(command int, kind int16) error {
	lock := unix.Flock_t{Type: kind, Start: writeLockByte, Len: 1}
	for {
		if err := unix.FcntlFlock(uintptr(x.fd), command, &lock); err != unix.EINTR {
			return err
		}
	}
}
