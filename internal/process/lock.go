package process

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// Lock is the liveness lock of a worker: an exclusive flock on a file of its own, held for as long as the worker or its
// guardian lives and freed by the kernel when the last of them is dead. Whoever gets it, as one of any number of readers, has proof of
// that.
//
// Both hold it through one open file description, which the guardian inherits. So it must never be unlocked by LOCK_UN, which
// would unlock it for both: it is let go by closing, and by dying. Neither must a command inherit the descriptor.
//
// The file tells a finder what may have outlived them. Its first byte is the mark: Clean says that no process of a command
// is left, Dirty that some may be. From byte 32 on follow records of 32 bytes, one for each command that runs; an empty one is
// zero. All of it is overwritten in place, and no write is longer than a record.
type Lock struct {
	file *os.File
	path string
}

// Record is what the lock file holds of a command that runs: enough to find its session.
type Record struct {
	Key
	PID     int    // of its leader; 0: an empty record
	Started uint64 // of the leader, in the kernel's own measure, to tell it from a later process with that number
}

// The marks.
const (
	Clean = 'C'
	Dirty = 'L'
)

const recordSize = 32

var (
	// ErrHeld says that a lock's owner lives.
	ErrHeld = errors.New("the lock is held")
	// ErrNoLock says that there is no such lock: no file, or one that was removed a moment ago.
	ErrNoLock = errors.New("no lock file")
)

// Path returns where the lock file was made.
func (l *Lock) Path() string { return l.path }

// Close lets the lock go, unless the guardian holds it too.
func (l *Lock) Close() error { return l.file.Close() }

// Remove removes the file of a lock that is held, so that nobody else can take it. Another one that holds it may have done so before.
func (l *Lock) Remove() error { return os.Remove(l.path) }

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

// Mark returns the mark; Dirty if it cannot be read.
func (l *Lock) Mark() byte {
	mark := []byte{Dirty}
	if n, _ := l.file.ReadAt(mark, 0); n == 1 && mark[0] == Clean {
		return Clean
	}
	return Dirty
}

func (l *Lock) setMark(mark byte) error {
	_, err := l.file.WriteAt([]byte{mark}, 0)
	return err
}

// Records returns what the file says about running commands.
func (l *Lock) Records() []Record { return readRecords(l.file) }

// ReadRecords is Records of a lock that somebody else holds; nil if there is none.
func ReadRecords(path string) []Record {
	file, err := openLock(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer file.Close()
	return readRecords(file)
}

func readRecords(file *os.File) []Record {
	var list []Record
	text, _ := io.ReadAll(io.NewSectionReader(file, recordSize, 1<<20))
	for ; len(text) >= recordSize; text = text[recordSize:] {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(text[8*i:]) }
		if r := (Record{Key{int64(word(0)), int64(word(1))}, int(word(2)), word(3)}); r.PID > 0 {
			list = append(list, r)
		}
	}
	return list
}

func (l *Lock) setRecord(slot int, r Record) error {
	text := make([]byte, 0, recordSize)
	for _, word := range []uint64{uint64(r.ID), uint64(r.Generation), uint64(r.PID), r.Started} {
		text = binary.LittleEndian.AppendUint64(text, word)
	}
	_, err := l.file.WriteAt(text, int64(recordSize*(1+slot)))
	return err
}

// forget drops all records: what they told of is gone.
func (l *Lock) forget() error { return l.file.Truncate(recordSize) }
