package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	driver "modernc.org/sqlite"
)

// A process that opens a database must know which files of this database other processes have open. SQLite locks certain bytes of a file as
// long as it uses the file, so this process asks the kernel which of these bytes are locked. One danger remains: when a process closes a
// file, it loses all its POSIX locks on that file. So this code reads through /proc, or opens only files that this process does not have
// open.

// These are the bytes that SQLite locks. A connection in WAL mode has a shared lock on the first range, in the database file. A process
// that uses the shared memory has a lock on the byte inUseByte of the -shm file.
const (
	sharedFirst, sharedSize = 0x40000000 + 2, 510
	inUseByte               = 128
)

// inUse reports which files of a database are in use by others: by other processes, or by other handles of this process.
type inUse struct {
	file   bool // whether a connection in WAL mode has the database file open
	shared bool // whether a process uses the shared memory; only set if the field "file" is false
}

// usedBy reports which of the files of the database at path are in use. It must not open shared memory that this process has open. SQLite
// has POSIX locks on the shared memory, and closing any descriptor of the file drops them.
func usedBy(path string) inUse {
	if !driver.OFDLockingEnabled() {
		return inUse{} // closing the file here would drop this process's POSIX locks on it, so usedBy must not open it
	}
	var use inUse
	header := make([]byte, 20)
	withFile(path, func(file *os.File) {
		n, _ := file.ReadAt(header, 0)
		// in WAL mode, bytes 18 and 19 of the database header are 2
		use.file = n == len(header) && header[18] == 2 && header[19] == 2 && locked(file, sharedFirst, sharedSize)
	})
	if use.file {
		return use
	}
	// If this process has mapped the -shm file, another handle of this process uses the file, although its database file was moved away. Do
	// not open the -shm file then: closing it would drop the locks of the process.
	if _, _, err := mapped(path + "-shm"); err == nil {
		use.shared = true
	} else {
		withFile(path+"-shm", func(file *os.File) { use.shared = locked(file, inUseByte, 1) })
	}
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
func locked(file *os.File, start, size int64) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: start, Len: size}
	return unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

// lockShared takes the same shared lock on a database file as a connection of SQLite.
func lockShared(file *os.File) error {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
	return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock)
}

// isMountPoint reports whether a filesystem, or a single file of a filesystem, is mounted at path itself.
func isMountPoint(path string) bool {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO, &stat)
	if err == nil && stat.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // kernels before 5.8 do not set STATX_ATTR_MOUNT_ROOT
	return hasMount(string(mounts), path)
}

// hasMount reports whether the mount table has a mount at path. The path is the fifth field, where a blank or a backslash is written as an
// octal number, such as \040.
func hasMount(mounts, path string) bool {
	path = strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`, "\n", `\012`).Replace(path)
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true
		}
	}
	return false
}

// sharedMemory is the shared memory of a database, as SQLite has mapped it into this process. The code reads it through /proc/self/mem,
// since opening and closing the -shm file would drop the locks on it.
type sharedMemory struct {
	memory   *os.File
	start    int64
	writable bool
}

// openShared returns the shared memory of the file at path, or nil if it cannot be read. It also returns nil for FUSE filesystems: there
// the check for an overwritten file cannot work, because the server may change the modification time of a file at any moment.
func openShared(path string) *sharedMemory {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil || fs.Type == unix.FUSE_SUPER_MAGIC {
		return nil
	}
	start, writable, err := mapped(path)
	if err != nil {
		return nil
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil
	}
	return &sharedMemory{memory, start, writable}
}

// checkpoints reads the progress of checkpoints and the counter of commits from SQLite's WAL-index, whose header has 136 bytes.
func (s *sharedMemory) checkpoints() (progress checkpoints, commits uint32, ok bool) {
	var index [136]byte
	if _, err := s.memory.ReadAt(index[:], s.start); err != nil || index[12] == 0 {
		return checkpoints{}, 0, false
	}
	progress = checkpoints{[8]byte(index[32:40]), binary.NativeEndian.Uint32(index[96:]), binary.NativeEndian.Uint32(index[128:])}
	return progress, binary.NativeEndian.Uint32(index[commitsAt:]), true
}

func (s *sharedMemory) close() { s.memory.Close() }

// mapped returns the address at which the beginning of a file is mapped into this process, and whether the mapping is writable. It
// reads the memory map of the process:
//
//	7f0a1c000000-7f0a1c008000 rw-s 00000000 fe:00 1234                     /path/of/runner.db-shm
func mapped(path string) (address int64, writable bool, err error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, false, err
	}
	end := []byte(" " + path + "\n")
	for line := range bytes.Lines(maps) {
		if !bytes.HasSuffix(line, end) {
			continue
		}
		fields := bytes.Fields(line)
		if start, _, ok := bytes.Cut(fields[0], []byte("-")); ok && string(fields[2]) == "00000000" {
			address, err = strconv.ParseInt(string(start), 16, 64)
			return address, bytes.HasPrefix(fields[1], []byte("rw")), err
		}
	}
	return 0, false, errors.New("not mapped")
}
