//go:build !linux

package runner

import "time"

// sinceBoot has no clock on this system that goes on while the machine is suspended.
func sinceBoot() time.Duration { return 0 }

// bootID is not known on this system.
func bootID() string { return "" }

// pidNamespace: there is one for all.
func pidNamespace() string { return "" }
