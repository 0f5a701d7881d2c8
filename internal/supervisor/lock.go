package supervisor

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Lock is the liveness lock of a worker: an exclusive flock on a file of its
// own. The worker and its guardians hold it as long as one of them lives, and
// the kernel frees it when the last one dies. Taking the lock proves that all
// of them are dead. Any number of processes may then take it, each with a
// shared flock.
//
// The worker and its guardians share one open file description, which the
// guardians inherit. LOCK_UN would unlock it for all of them, so no code may
// use it: the kernel frees the lock when the last descriptor is closed. A
// command must not inherit the descriptor.
//
// The file records which attempts may have left processes. From byte 512 on it
// has 16 bytes for each guardian: the key of an attempt whose processes may be
// alive, or zeros. The guardian writes its record before it forks the command,
// and clears it after the last process has ended. The first 512 bytes hold the
// prefix of the names of the guardians' cgroups, written once when the file is
// created. Every later write replaces one record.
type Lock struct {
	file    *os.File
	path    string
	cgroups string // prefix of the paths of the guardians' cgroups; empty if they have none
}

func lockOf(file *os.File, path string) *Lock {
	head := make([]byte, headSize)
	_, _ = file.ReadAt(head, 0) // zeros if the file can't be read

	return &Lock{file, path, string(bytes.TrimRight(head, "\x00"))}
}

// record is an entry of the lock file: an attempt whose processes may be alive.
type record struct {
	Key
	cgroup string // path of the attempt's cgroup, which may not exist; empty without cgroups
}

const (
	headSize   = 512
	recordSize = 16
	maxSlots   = 1 << 16
)

var (
	// ErrHeld means that the owner of the lock is alive.
	ErrHeld = errors.New("the lock is held")

	// ErrNoLock means that there is no lock file, or that another process has
	// just removed it.
	ErrNoLock = errors.New("no lock file")
)

// LockSuffix is the suffix of the names of lock files.
const LockSuffix = ".lock"

// LockPath returns the path of a worker's liveness lock in the directory beside
// its database. It returns "" if worker isn't a valid id, because ids come from
// a file that other users may write.
func LockPath(dir, worker string) string {
	if worker == "" || strings.Trim(worker, "0123456789abcdef-") != "" {
		return ""
	}

	return filepath.Join(dir, worker+LockSuffix)
}

// Free reports whether the owner of the lock at path is dead. It returns false
// if it can't know, because there is no lock file or this user can't open it.
func Free(path string) bool {
	lock, err := TakeLock(path)
	if err != nil {
		return false
	}

	_ = lock.Close()

	return true
}

// Path returns the path at which the lock file was created or opened.
func (l *Lock) Path() string { return l.path }

// Close closes this process's descriptor. A guardian that has the file open
// still holds the lock.
func (l *Lock) Close() error { return l.file.Close() }

// Remove removes the file of a lock that is held, so that nobody else can take
// it, and the cgroups of its owner. They may be gone already, because several
// processes may hold the lock and call Remove.
func (l *Lock) Remove() error {
	if l.cgroups != "" {
		dirs, _ := filepath.Glob(l.cgroups + "*")
		for _, dir := range dirs {
			removeCgroup(dir)
		}
	}

	return os.Remove(l.path)
}

// Intact reports whether the path still refers to this lock, and whether there
// is a file at the path.
func (l *Lock) Intact() (intact, present bool) {
	mine, err := l.file.Stat()
	if err != nil {
		return false, false
	}

	there, err := os.Lstat(l.path)
	if err != nil {
		return false, !errors.Is(err, os.ErrNotExist)
	}

	return os.SameFile(mine, there), true
}

// Clean reports whether the file has no records: no process of a command has
// outlived the owner of the lock. It returns false if the file can't be read.
func (l *Lock) Clean() bool {
	records, err := l.records()
	return err == nil && len(records) == 0
}

// recordsOf returns the records of a lock that another process may hold. They
// name the attempts whose processes may be alive. It returns nil if there is no
// lock.
func recordsOf(path string) []record {
	file, err := openLock(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer file.Close()

	records, _ := lockOf(file, path).records()
	return records
}

func (l *Lock) records() (list []record, err error) {
	text, err := io.ReadAll(io.NewSectionReader(l.file, 0, headSize+recordSize*maxSlots))
	if err != nil || len(text) < headSize {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}

	for slot := range (len(text) - headSize) / recordSize {
		if k := keyIn(text[headSize+recordSize*slot:]); k != (Key{}) {
			list = append(list, record{k, l.cgroupDir(slot)})
		}
	}

	return list, nil
}

func keyIn(text []byte) (k Key) {
	_, _ = binary.Decode(text, binary.LittleEndian, &k)
	return k
}

// setRecord writes the record of a slot. The zero key clears it.
func (l *Lock) setRecord(slot int, k Key) error {
	text, _ := binary.Append(nil, binary.LittleEndian, k)
	_, err := l.file.WriteAt(text, headSize+recordSize*int64(slot))
	return err
}

// recordedKey returns the key in the record of a slot; zero if there is none.
func (l *Lock) recordedKey(slot int) Key {
	text := make([]byte, recordSize)
	_, _ = l.file.ReadAt(text, headSize+recordSize*int64(slot)) // zeros if the file ends before
	return keyIn(text)
}

// setCgroups writes the prefix of the paths of the guardians' cgroups in dir.
// It contains the worker's id, so no other worker has the same.
func (l *Lock) setCgroups(dir string) error {
	head := make([]byte, headSize)
	id := strings.TrimSuffix(filepath.Base(l.path), filepath.Ext(l.path))
	name := filepath.Join(dir, "runner-"+id+"-")
	if dir != "" && len(name) < headSize {
		copy(head, name)
		l.cgroups = name
	}

	_, err := l.file.WriteAt(head, 0)
	return err
}

// cgroupDir returns the directory of the cgroup of the guardian in a slot;
// empty if it has none.
func (l *Lock) cgroupDir(slot int) string {
	if l.cgroups == "" {
		return ""
	}

	return l.cgroups + strconv.Itoa(slot)
}
