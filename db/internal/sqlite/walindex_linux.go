package sqlite

import (
	"encoding/binary"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// walIndex is a descriptor of the -shm file, SQLite's WAL-index. We use only
// what SQLite's file format documents: the header (counter of commits, progress
// of checkpoints) and the bytes that connections lock.
//
// Closing any descriptor of a file drops all POSIX locks that the process has
// on it, also those of an application's own connections. So a walIndex is
// shared by the whole process and stays open until the file has no name left:
// SQLite removes the file when the last connection of all processes closes.
type walIndex struct {
	fd       int // not an os.File, which the garbage collector would close
	writable bool
	users    int // handles that use it; guarded by walIndexes.mu

	mu      sync.Mutex
	waiters int           // goroutines that want the lock
	active  bool          // whether one goroutine waits in the kernel, or has the lock
	granted chan struct{} // gives the lock to a waiter
}

var walIndexes = struct {
	mu   sync.Mutex
	open map[fileID]*walIndex
}{open: map[fileID]*walIndex{}}

// openIndex returns the WAL-index at path, or nil if it can't be opened. It
// returns nil on FUSE as well, where the check for an overwritten file can't
// work: the server may change the modification time at any moment.
func openIndex(path string) *walIndex {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil || fs.Type == unix.FUSE_SUPER_MAGIC {
		return nil
	}

	sweepIndexes()
	walIndexes.mu.Lock()
	defer walIndexes.mu.Unlock()
	if known, err := statFile(path); err == nil && walIndexes.open[known.id] != nil {
		x := walIndexes.open[known.id]
		x.users++
		return x
	}

	const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	x := &walIndex{users: 1, writable: true, granted: make(chan struct{}, 1)}
	var err error
	if x.fd, err = unix.Open(path, unix.O_RDWR|flags, 0); err != nil {
		x.writable = false
		if x.fd, err = unix.Open(path, unix.O_RDONLY|flags, 0); err != nil {
			return nil
		}
	}
	var stat unix.Stat_t
	if unix.Fstat(x.fd, &stat) != nil {
		return nil
	}
	walIndexes.open[fileID{uint64(stat.Dev), uint64(stat.Ino)}] = x
	return x
}

// close ends the use by one handle. The descriptor stays open while the file
// has a name, because others may have it open.
func (x *walIndex) close() {
	if x != nil {
		walIndexes.mu.Lock()
		defer walIndexes.mu.Unlock()
		x.users--
	}
}

// sweepIndexes closes the descriptors of files that SQLite has removed.
func sweepIndexes() {
	walIndexes.mu.Lock()
	defer walIndexes.mu.Unlock()
	for id, x := range walIndexes.open {
		var stat unix.Stat_t
		if x.users == 0 && unix.Fstat(x.fd, &stat) == nil && stat.Nlink == 0 {
			unix.Close(x.fd)
			delete(walIndexes.open, id)
		}
	}
}

// header reads the progress of checkpoints and the counter of commits. ok is
// false while SQLite creates or rebuilds the file.
func (x *walIndex) header() (progress checkpoints, commits uint32, ok bool) {
	if x == nil {
		return checkpoints{}, 0, false
	}
	var index [136]byte
	if n, err := unix.Pread(x.fd, index[:], 0); err != nil || n < len(index) || index[12] == 0 {
		return checkpoints{}, 0, false
	}
	progress = checkpoints{[8]byte(index[32:40]), binary.NativeEndian.Uint32(index[96:]), binary.NativeEndian.Uint32(index[128:])}
	return progress, binary.NativeEndian.Uint32(index[8:]), true
}

// commits reads the counter of commits.
func (x *walIndex) commits() (n uint32, ok bool) {
	_, n, ok = x.header()
	return n, ok
}

// awaitWriter sleeps in the kernel until no connection has the write lock, or
// until the time is over. The kernel wakes us when the lock is released, so we
// don't miss the few microseconds between two transactions of a busy program.
// If the result is true, nobody can take the lock until release.
//
// F_OFD_SETLKW has no timeout. So a goroutine waits, and gives the lock back at
// once if nobody wants it any more.
func (x *walIndex) awaitWriter(longest time.Duration) bool {
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
	case <-x.granted:
		return true
	case <-timer.C:
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-x.granted:
		return true
	default:
		x.waiters--
		return false
	}
}

func (x *walIndex) block() {
	_ = x.lock(unix.F_OFD_SETLKW, unix.F_WRLCK)
	x.mu.Lock()
	if x.waiters > 0 {
		x.waiters--
		x.granted <- struct{}{}
		x.mu.Unlock()
		return
	}
	x.mu.Unlock()
	x.release()
}

// release gives back the lock that awaitWriter has taken.
func (x *walIndex) release() {
	_ = x.lock(unix.F_OFD_SETLK, unix.F_UNLCK)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.active = x.waiters > 0; x.active {
		go x.block()
	}
}

func (x *walIndex) lock(command int, kind int16) error {
	lock := unix.Flock_t{Type: kind, Start: writeLockByte, Len: 1}
	for {
		if err := unix.FcntlFlock(uintptr(x.fd), command, &lock); err != unix.EINTR {
			return err
		}
	}
}
