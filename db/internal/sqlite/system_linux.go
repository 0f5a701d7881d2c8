package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	driver "modernc.org/sqlite"
)

// Whoever opens a database must know which of its files other processes have
// open. SQLite locks certain bytes of a file as long as it uses the file, so we
// ask the kernel which of these bytes are locked. We don't open the -shm file:
// a process that closes a file loses all its POSIX locks on it. On the database
// file, SQLite has OFD locks, which stay.

// A connection in WAL mode has a shared lock on these bytes of the database
// file, in the page that SQLite reserves for locks.
const sharedFirst, sharedSize = 0x40000000 + 2, 510

// inUse says which files of a database are in use, by other processes or by
// other handles of this one.
type inUse struct {
	file   bool // a connection in WAL mode has the database file open
	shared bool // a process uses the shared memory, and nobody the file
}

// usedBy reports which files of the database at path are in use.
func usedBy(path string) inUse {
	if !driver.OFDLockingEnabled() {
		return inUse{} // opening and closing the file would drop this process's POSIX locks on it
	}

	var use inUse
	header := make([]byte, 20)
	if file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0); err == nil {
		defer file.Close()
		n, _ := file.ReadAt(header, 0)
		isWAL := n == len(header) && header[18] == 2 && header[19] == 2
		use.file = isWAL && isLocked(file)
	}

	use.shared = !use.file && len(locks(path+"-shm", surely, func(lock) bool { return true })) > 0
	return use
}

// connectionLock is the lock of a connection, or one that meets it.
func connectionLock(kind int16) *unix.Flock_t {
	return &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: sharedFirst, Len: sharedSize}
}

// isLocked reports whether a connection has its lock on the file.
func isLocked(file *os.File) bool {
	lock := connectionLock(unix.F_WRLCK)
	return unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, lock) == nil && lock.Type != unix.F_UNLCK
}

// lockShared takes the same lock on a database file as a connection.
func lockShared(file *os.File) error {
	return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, connectionLock(unix.F_RDLCK))
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

	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, connectionLock(unix.F_WRLCK))
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		file.Close()
		return nil, false
	}

	return func() { file.Close() }, true
}

// The locks and shared memory of these filesystems depend on a remote server,
// and are unreliable. networkMagic has them by the magic number of statfs, and
// networkNames those that use FUSE by their name in the mount table.
var (
	networkMagic = map[int64]string{
		unix.NFS_SUPER_MAGIC:  "nfs",
		unix.SMB_SUPER_MAGIC:  "smb",
		unix.CIFS_SUPER_MAGIC: "cifs",
		unix.SMB2_SUPER_MAGIC: "smb2",
		unix.V9FS_MAGIC:       "9p",
		unix.AFS_SUPER_MAGIC:  "afs",
		unix.CEPH_SUPER_MAGIC: "ceph",
		unix.CODA_SUPER_MAGIC: "coda",
	}
	networkNames = []string{"virtiofs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.davfs2", "fuse.cephfs"}
)

// networkFS returns the name of path's network filesystem, empty if it's local
// or unknown.
func networkFS(path string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return ""
	}
	if name := networkMagic[int64(fs.Type)]; name != "" || fs.Type != unix.FUSE_SUPER_MAGIC {
		return name
	}
	if name := filesystem(path); slices.Contains(networkNames, name) {
		return name
	}

	return ""
}

// filesystem returns the type of path's filesystem, such as ext4, empty if it's
// unknown.
func filesystem(path string) string {
	var stat unix.Stat_t
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || unix.Stat(path, &stat) != nil {
		return ""
	}
	return mountName(string(mounts), unix.Major(stat.Dev), unix.Minor(stat.Dev))
}

// mountName returns the type of the filesystem on a device: fuse.sshfs in this
// line of the mount table.
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - fuse.sshfs host:/dir rw
func mountName(mounts string, major, minor uint32) string {
	device := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(mounts) {
		mount, kind, ok := strings.Cut(line, " - ")
		if fields := strings.Fields(mount); ok && len(fields) > 2 && fields[2] == device {
			name, _, _ := strings.Cut(kind, " ")
			return name
		}
	}

	return ""
}

// checkEvery is the time between two checks for commits without an event.
const checkEvery = time.Second

// walEvents sends an event when a process writes to the database's WAL; several
// writes may cause only one. It watches the directory with inotify, because
// SQLite creates and removes the WAL, and opens no descriptor of the WAL
// (measured: 0.15 ms p50, 0.02 % of a core while idle). Without inotify there
// are no events, and only the regular checks of the watch find commits.
func walEvents(path string) (events <-chan struct{}, stop func()) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, func() {}
	}

	file := os.NewFile(uintptr(fd), "inotify") // non-blocking, so that the Go runtime waits in its poller and needs no thread
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_MODIFY|unix.IN_CREATE); err != nil {
		file.Close()
		return nil, func() {}
	}

	name := []byte(filepath.Base(path) + "-wal")
	out, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		buffer := make([]byte, 16<<10)
		last := time.Time{}
		for {
			n, err := file.Read(buffer)
			if err != nil {
				return
			}
			if !mentions(buffer[:n], name) {
				continue
			}

			select { // read no more events before the watch has received this one
			case out <- struct{}{}:
			case <-done:
				return
			}

			if time.Since(last) < burst { // many commits in a short time need only one event
				time.Sleep(burst)
			}

			last = time.Now()
		}
	}()
	return out, func() { close(done); file.Close() }
}

const burst = 2 * time.Millisecond

// mentions reports whether one of the events in buffer concerns the file with
// this name.
func mentions(buffer, name []byte) bool {
	for len(buffer) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(buffer[4:])
		size := int(binary.NativeEndian.Uint32(buffer[12:]))
		end := min(unix.SizeofInotifyEvent+size, len(buffer))
		if mask&unix.IN_Q_OVERFLOW != 0 || bytes.Equal(bytes.TrimRight(buffer[unix.SizeofInotifyEvent:end], "\x00"), name) {
			return true
		}
		buffer = buffer[end:]
	}
	return false
}
