//go:build !linux

package engine

// BootID returns an empty text, because this system has no boot id.
func BootID() string { return "" }

// pidNamespace returns an empty text, because all processes of this system are in one namespace.
func pidNamespace() string { return "" }
