//go:build unix && !linux

package supervisor

// There is no guardian that could be tested by these.
func storm(string, string) {}
func lesserWorker(string)  {}
func anotherUser([]string) {}
func runSweep(string)      {}
func inside(string)        {}
func breed(string)         {}
