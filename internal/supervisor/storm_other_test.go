//go:build unix && !linux

package supervisor

// These programs test guardians, which this system does not have.
func storm(string, string)      {}
func unprivilegedWorker(string) {}
func anotherUser([]string)      {}
func runSweep(string)           {}
func namespaceInit(string)      {}
func leaveProcesses(string)     {}
