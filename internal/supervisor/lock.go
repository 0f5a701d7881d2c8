package supervisor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Lock is the liveness lock of a worker: an exclusive flock on a file of its own, held for as long as the worker or one of its
// guardians lives, and freed by the kernel when the last of them is dead. Whoever gets it, as one of any number of readers, has proof of
// that.
//
// All hold it through one open file description, which the guardians inherit. So it must never be unlocked by LOCK_UN, which
// would unlock it for all: it is let go by closing, and by dying. Neither must a command inherit the descriptor.
//
// The file tells a finder what may have outlived them. From byte 512 on it has a record of 16 bytes for each guardian: the key of the attempt
// of which processes may live, and zero when there is none. It is written before the command is forked, and cleared after its last process
// has ended. The bytes before hold a text: the beginning of the names of the guardians' cgroups. All is overwritten in place, and no
// write is longer than a record.
type Lock struct {
	file *os.File
	path string
}

// Record is what the lock file holds of an attempt of which processes may live.
type Record struct {
	Key
	Cgroup string // the directory of its cgroup, which need not exist; empty: it has none
}

const (
	headSize   = 512
	recordSize = 16
	maxSlots   = 1 << 16
)

var (
	// ErrHeld says that a lock's owner lives.
	ErrHeld = errors.New("the lock is held")
	// ErrNoLock says that there is no such lock: no file, or one that was removed a moment ago.
	ErrNoLock = errors.New("no lock file")
)

// Path returns where the lock file was made.
func (l *Lock) Path() string { return l.path }

// Close lets the lock go, unless a guardian holds it too.
func (l *Lock) Close() error { return l.file.Close() }

// Remove removes the file of a lock that is held, so that nobody else can take it, and the cgroups of its owner. Another
// reader of the lock may have removed them before.
func (l *Lock) Remove() error {
	if prefix := l.cgroupPrefix(); prefix != "" {
		dirs, _ := filepath.Glob(prefix + "*")
		for _, dir := range dirs {
			removeCgroup(dir)
		}
	}
	return os.Remove(l.path)
}

// Intact says whether the path still leads to this lock; present, whether it leads anywhere.
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

// Clean says whether no process of a command can have outlived the owner of the lock. It is false if the file cannot be read.
func (l *Lock) Clean() bool {
	info, err := l.file.Stat()
	if err != nil || info.Size() < headSize {
		return false
	}
	records, err := readRecords(l.file)
	return err == nil && len(records) == 0
}

// Records returns the attempts of which processes may live.
func (l *Lock) Records() []Record {
	records, _ := readRecords(l.file)
	return records
}

// ReadRecords is Records of a lock that somebody else holds; nil if there is none.
func ReadRecords(path string) []Record {
	file, err := openLock(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer file.Close()
	records, _ := readRecords(file)
	return records
}

func readRecords(file *os.File) (list []Record, err error) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, headSize+recordSize*maxSlots))
	prefix := prefixIn(text[:min(len(text), headSize)])
	for slot := range max(len(text)-headSize, 0) / recordSize {
		at := headSize + recordSize*slot
		k := Key{int64(binary.LittleEndian.Uint64(text[at:])), int64(binary.LittleEndian.Uint64(text[at+8:]))}
		if k != (Key{}) {
			list = append(list, Record{k, cgroupName(prefix, slot)})
		}
	}
	return list, err
}

// setRecord writes the record of the guardian in a slot; the empty key clears it.
func (l *Lock) setRecord(slot int, k Key) error {
	text := binary.LittleEndian.AppendUint64(make([]byte, 0, recordSize), uint64(k.ID))
	_, err := l.file.WriteAt(binary.LittleEndian.AppendUint64(text, uint64(k.Generation)), headSize+recordSize*int64(slot))
	return err
}

// record returns the record of one guardian; false: it has none.
func (l *Lock) record(slot int) (Record, bool) {
	text := make([]byte, recordSize)
	_, _ = l.file.ReadAt(text, headSize+recordSize*int64(slot)) // zero if there is none
	k := Key{int64(binary.LittleEndian.Uint64(text)), int64(binary.LittleEndian.Uint64(text[8:]))}
	return Record{k, l.cgroupDir(slot)}, k != (Key{})
}

// head returns the first bytes of the file: the beginning of the names of cgroups in dir, which nobody else has.
func (l *Lock) head(dir string) []byte {
	head := make([]byte, headSize)
	if dir != "" {
		name := filepath.Join(dir, "runner-"+strings.TrimSuffix(filepath.Base(l.path), filepath.Ext(l.path))+"-")
		if len(name) < headSize {
			copy(head, name)
		}
	}
	return head
}

// groups returns the beginning of the names of the guardians' cgroups; empty: they have none.
func (l *Lock) cgroupPrefix() string {
	head := make([]byte, headSize)
	_, _ = l.file.ReadAt(head, 0) // then it is empty
	return prefixIn(head)
}

func prefixIn(head []byte) string { return string(bytes.TrimRight(head, "\x00")) }

// group returns the directory of the cgroup of one guardian.
func (l *Lock) cgroupDir(slot int) string { return cgroupName(l.cgroupPrefix(), slot) }

func cgroupName(prefix string, slot int) string {
	if prefix == "" {
		return ""
	}
	return prefix + strconv.Itoa(slot)
}
