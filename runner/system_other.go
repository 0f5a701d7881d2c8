//go:build !linux

package runner

// bootID is not known on this system.
func bootID() string { return "" }

// pidNamespace: there is one for all.
func pidNamespace() string { return "" }
