package sqlite

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/db/internal/engine"
)

// writeLockByte is the byte of the -shm file that the writer of a WAL database locks (SQLite's WALINDEX_LOCK_OFFSET).
const writeLockByte = 120

// lock is a line of /proc/locks about one file.
type lock struct {
	pid   int
	write bool
	byte0 int // first locked byte
}

// locks lists the wanted locks on the file at path. It reads /proc/locks, which the kernel shows to every user. It does not open the file,
// since closing it would drop the locks of this process.
//
// The kernel returns the list page by page and may miss a lock while others
// change: 4 of 1000 reads missed one beside 900 changing locks. So locks reads it
// up to lockReads times before it believes that there is no wanted lock.
func locks(path string, wanted func(lock) bool) (found []lock) {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	inode := ":" + strconv.FormatUint(identify(info).inode, 10)
	for i := 0; i < lockReads && len(found) == 0; i++ {
		text, err := os.ReadFile("/proc/locks")
		if err != nil {
			return nil
		}
		for line := range strings.Lines(string(text)) {
			// A line looks like this: 1: POSIX ADVISORY WRITE 4411 fe:01:1234 120 120
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

const lockReads = 10

// lockHolder finds the process that holds the write lock, and returns its pid
// and name. The pid is 0 if the process is unknown.
func lockHolder(shm string) (pid int, name string) {
	for _, l := range locks(shm, func(l lock) bool { return l.write && l.byte0 == writeLockByte && l.pid > 0 }) {
		return l.pid, nameOf(l.pid)
	}
	return 0, ""
}

func nameOf(pid int) string {
	comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return strings.TrimSpace(string(comm))
}

// readLockBytes are the bytes of the -shm file that connections lock during a read transaction.
var readLockBytes = []int{123, 124, 125, 126, 127}

// readers lists the other processes that are reading the database now. It finds them by their POSIX locks on the -shm file. SQLite takes
// POSIX locks on this file even if it takes OFD locks on the database file.
func readers(shm string) []engine.Process { return lockers(shm, readLockBytes) }

// inUseByte is the byte of the -shm file on which each connection has a shared lock while it uses the file.
const inUseByte = 128

// users lists the other processes that have the database open.
func users(shm string) []engine.Process { return lockers(shm, []int{inUseByte}) }

// lockers lists the other processes that have a shared lock on one of the bytes.
func lockers(shm string, bytes []int) []engine.Process {
	var found []engine.Process
	for _, l := range locks(shm, func(l lock) bool {
		return !l.write && l.pid > 0 && l.pid != os.Getpid() && slices.Contains(bytes, l.byte0)
	}) {
		if p := (engine.Process{PID: l.pid, Name: nameOf(l.pid)}); !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	return found
}

// othersOpen reports whether another process has the database open: each connection holds a lock on the -shm file.
func othersOpen(shm string) bool {
	return len(locks(shm, func(l lock) bool { return l.pid != os.Getpid() })) > 0
}
