//go:build !linux

package engine

// bootID returns an empty text: this system has no id of a boot.
func bootID() string { return "" }

// pidNamespace returns an empty text: all processes of this system are in one namespace.
func pidNamespace() string { return "" }
