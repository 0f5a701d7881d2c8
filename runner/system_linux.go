package runner

import (
	"os"
	"strings"
)

// bootID tells one run of this host's kernel from another.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // empty where there is none
	return strings.TrimSpace(string(text))
}

// pidNamespace names the set of processes that this one sees.
func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
