package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// procfs is the directory with the kernel's data about the machine. Tests replace it.
var procfs = "/proc"

// loadAverage returns the load average of the last minute.
func loadAverage() (float64, error) {
	text, err := os.ReadFile(filepath.Join(procfs, "loadavg"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), " ")
	return strconv.ParseFloat(first, 64)
}

// freeMemory returns the bytes of memory that processes can still get without swapping.
func freeMemory() (int64, error) {
	text, err := os.ReadFile(filepath.Join(procfs, "meminfo"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "MemAvailable:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 54)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// BootID returns an id of the current run of this host's kernel, or an empty text if the system has no such id.
func BootID() string {
	text, _ := os.ReadFile(filepath.Join(procfs, "sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(text))
}

// pidNamespace returns the name of the PID namespace of this process, which is the set of processes that it can see.
func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
