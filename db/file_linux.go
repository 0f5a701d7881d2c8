package db

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// writeLockByte is where the lock of a WAL database's writer is, in its -shm file (SQLite's WALINDEX_LOCK_OFFSET).
const writeLockByte = "120"

// lockHolder returns the pid and name of the process that holds the write lock: best effort, 0 when it cannot be told.
func lockHolder(shm string) (pid int, name string) {
	info, err := os.Stat(shm)
	if err != nil {
		return 0, ""
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0, ""
	}
	inode := fmt.Sprint(identify(info).inode)
	for line := range strings.Lines(string(locks)) {
		// 1: POSIX  ADVISORY  WRITE 4411 fe:01:1234 120 120
		field := strings.Fields(line)
		if len(field) != 8 || field[3] != "WRITE" || !strings.HasSuffix(field[5], ":"+inode) || field[6] != writeLockByte {
			continue
		}
		if pid, err = strconv.Atoi(field[4]); err == nil && pid > 0 {
			comm, _ := os.ReadFile("/proc/" + field[4] + "/comm")
			return pid, strings.TrimSpace(string(comm))
		}
	}
	return 0, ""
}
