package engine

import (
	"os"
	"strings"
)

// bootID returns an id of the current run of this host's kernel, or an empty text where the system has none.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// pidNamespace returns the name of the set of processes that this process sees.
func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
