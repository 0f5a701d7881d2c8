package sqlite

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
	driver "modernc.org/sqlite"
)

// A process that opens a database must know which files of this database other processes have open. SQLite locks certain bytes of a file as
// long as it uses the file, so this process asks the kernel which of these bytes are locked. It doesn't open the -shm file: when a process
// closes a file, it loses all its POSIX locks on that file. On the database file, SQLite has OFD locks, which stay.

// A connection in WAL mode has a shared lock on these bytes of the database file, which are in the page that SQLite reserves for locks.
const sharedFirst, sharedSize = 0x40000000 + 2, 510

// inUse reports which files of a database are in use by others: by other processes, or by other handles of this process.
type inUse struct {
	file   bool // whether a connection in WAL mode has the database file open
	shared bool // whether a process uses the shared memory; only set if the field "file" is false
}

// usedBy reports which of the files of the database at path are in use.
func usedBy(path string) inUse {
	if !driver.OFDLockingEnabled() {
		return inUse{} // closing the file here would drop this process's POSIX locks on it, so usedBy must not open it
	}
	var use inUse
	header := make([]byte, 20)
	withFile(path, func(file *os.File) {
		n, _ := file.ReadAt(header, 0)
		// in WAL mode, bytes 18 and 19 of the database header are 2
		use.file = n == len(header) && header[18] == 2 && header[19] == 2 && locked(int(file.Fd()), sharedFirst, sharedSize)
	})
	if use.file {
		return use
	}
	use.shared = len(locks(path+"-shm", func(lock) bool { return true })) > 0
	return use
}

// withFile opens the file at path, if there is one, and calls the function "do" with it.
func withFile(path string, do func(*os.File)) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	do(file)
}

// locked reports whether another descriptor has a lock on the given bytes.
func locked(fd int, start, size int64) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: start, Len: size}
	return unix.FcntlFlock(uintptr(fd), unix.F_OFD_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

// lockShared takes the same shared lock on a database file as a connection of SQLite.
func lockShared(file *os.File) error {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock)
}

// isMountPoint reports whether a filesystem, or a single file of a filesystem,
// is mounted at path itself. Kernels before 5.8 don't tell.
func isMountPoint(path string) bool {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO, &stat)
	return err == nil && stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// keepOut keeps other connections from opening the database at path until
// release. The result ok is false if somebody has it open already.
func keepOut(path string) (release func(), ok bool) {
	if use := usedBy(path); use.file || use.shared {
		return nil, false
	}
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil || !driver.OFDLockingEnabled() {
		return func() {}, true // no file, or one that only a rename can replace
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock); errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		file.Close()
		return nil, false
	}
	return func() { file.Close() }, true
}
