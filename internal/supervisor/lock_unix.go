//go:build unix

package supervisor

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// NewLock creates a lock file at path and takes the lock. The file must not
// exist.
func NewLock(path string) (*Lock, error) {
	file, err := openLock(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}

	l := &Lock{file: file, path: path}
	if err = l.flock(unix.LOCK_EX); err == nil {
		err = l.setCgroups(ownCgroup())
	}
	if err != nil {
		return nil, errors.Join(err, l.Remove(), l.Close())
	}

	return l, nil
}

// TakeLock takes the lock at path, which proves that its owner is dead. It
// doesn't wait. The error is ErrHeld if the owner lives, and ErrNoLock if there
// is no lock file. Several processes may hold the lock at once, so a stopped
// process doesn't block the others.
func TakeLock(path string) (*Lock, error) {
	file, err := openLock(path, os.O_RDWR)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoLock
	case err != nil:
		return nil, err
	}

	l := lockOf(file, path)
	if err := l.flock(unix.LOCK_SH); err != nil {
		file.Close()
		return nil, err
	}
	if intact, _ := l.Intact(); !intact { // another process took the lock first and removed the file
		file.Close()
		return nil, ErrNoLock
	}

	return l, nil
}

func (l *Lock) flock(how int) error {
	for {
		err := unix.Flock(int(l.file.Fd()), how|unix.LOCK_NB)
		switch err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrHeld
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}

// openLock opens a regular file. It doesn't follow a symbolic link, and doesn't
// wait for the other end of a FIFO.
func openLock(path string, flag int) (*os.File, error) {
	file, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, errors.Join(err, &os.PathError{Op: "open", Path: path, Err: unix.EINVAL})
	}

	return file, nil
}
