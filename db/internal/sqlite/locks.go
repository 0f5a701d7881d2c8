package sqlite

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/db/internal/engine"
)

// These are the bytes of the -shm file that SQLite's connections lock
// (https://sqlite.org/walformat.html), also if they take OFD locks on the
// database file.
const (
	writeLockByte = 120 // locked by the writer
	firstReadByte = 123 // locked during a read transaction: this byte or one of the next four
	inUseByte     = 128 // locked by each connection, as long as it uses the file
)

// lock is a line of /proc/locks about one file.
type lock struct {
	pid   int
	write bool
	byte0 int // first locked byte
}

func (l lock) isOthers() bool { return l.pid != os.Getpid() }

// locks lists the wanted locks on the file at path. It reads /proc/locks, which
// Linux shows to every user, and finds none on other systems. It doesn't open
// the file, since closing it would drop the locks of this process.
//
// The kernel returns the list page by page and may miss a lock while others
// change: 4 of 1000 reads missed one beside 900 changing locks. So whoever must
// know that there is no wanted lock lets it read surely times.
func locks(path string, reads int, wanted func(lock) bool) (found []lock) {
	file, err := statFile(path)
	if err != nil {
		return nil
	}

	inode := ":" + strconv.FormatUint(file.id.inode, 10)
	for i := 0; i < reads && len(found) == 0; i++ {
		text, err := os.ReadFile("/proc/locks")
		if err != nil {
			return nil
		}

		for line := range strings.Lines(string(text)) {
			// A line looks like this: 1: POSIX ADVISORY WRITE 4411 fe:01:1234
			// 120 120
			field := strings.Fields(line)
			if len(field) != 8 || !strings.HasSuffix(field[5], inode) {
				continue
			}

			pid, err := strconv.Atoi(field[4])
			first, errFirst := strconv.Atoi(field[6])
			if l := (lock{pid, field[3] == "WRITE", first}); err == nil && errFirst == nil && wanted(l) {
				found = append(found, l)
			}
		}
	}

	return found
}

// surely is a number of reads of /proc/locks that together miss no lock.
const surely = 10

// processes lists the processes that have these locks, as far as this one sees
// them.
func processes(locks []lock) (list []engine.Process) {
	for _, l := range locks {
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(l.pid) + "/comm")
		if p := (engine.Process{PID: l.pid, Name: strings.TrimSpace(string(comm))}); l.pid > 0 && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// lockHolder returns the process that holds the write lock, or the zero Process
// if it's unknown.
func lockHolder(shm string) (holder engine.Process) {
	for _, p := range processes(locks(shm, surely, func(l lock) bool { return l.write && l.byte0 == writeLockByte && l.pid > 0 })) {
		return p
	}
	return holder
}

// Readers implements engine.Shared.
func (d *File) Readers() []engine.Process {
	return processes(locks(d.sharedPath, surely, func(l lock) bool {
		return !l.write && l.isOthers() && l.byte0 >= firstReadByte && l.byte0 < inUseByte
	}))
}

// users lists the other processes that have the database open.
func (d *File) users() []engine.Process {
	return processes(locks(d.sharedPath, surely, func(l lock) bool { return !l.write && l.isOthers() && l.byte0 == inUseByte }))
}

// othersOpen reports whether another process has the database open. It returns
// true on a system that shows no locks, and false with Options.Alone.
func (d *File) othersOpen() bool { return d.othersSeen(surely) }

// othersSeen is othersOpen after so many reads of /proc/locks.
func (d *File) othersSeen(reads int) bool {
	return !d.options.Alone && (runtime.GOOS != "linux" || len(locks(d.sharedPath, reads, lock.isOthers)) > 0)
}
