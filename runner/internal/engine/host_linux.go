package engine

import (
	"os"
	"strings"
)

// bootID returns an id of the current run of this host's kernel, or an empty text if the system has no such id.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// pidNamespace returns the name of the PID namespace of this process, which is the set of processes that it can see.
func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
