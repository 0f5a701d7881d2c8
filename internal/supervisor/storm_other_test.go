//go:build unix && !linux

package supervisor

// There is no guardian that could be tested by these.
func storm(string, string)      {}
func unprivilegedWorker(string) {}
func anotherUser([]string)      {}
func runSweep(string)           {}
func namespaceInit(string)      {}
func leaveProcesses(string)     {}
