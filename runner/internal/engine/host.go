package engine

import (
	"os"
	"path/filepath"
	"strings"
)

// procfs is the directory with the kernel's data about the machine. Tests
// replace it.
var procfs = "/proc"

// BootID returns an id of the current run of this host's kernel. It returns an
// empty text if the system isn't Linux and has no such id.
func BootID() string {
	text, _ := os.ReadFile(filepath.Join(procfs, "sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(text))
}

// pidNamespace returns the name of the PID namespace of this process, which is
// the set of processes that it can see. It is empty on systems other than
// Linux.
func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
