//go:build !linux

package supervisor

import (
	"os"
	"time"
)

// Guard returns false: only Linux has guardian processes.
func Guard(string) bool { return false }

// Guardians starts commands directly on this system. The commands of a killed
// worker run on. One record stays in its lock file, so other workers know that.
type Guardians struct{ GuardiansOptions }

// NewGuardians returns Guardians.
func NewGuardians(o GuardiansOptions) *Guardians { return &Guardians{o} }

// Child is a command that was started.
type Child = Process

// Prepare does nothing on this system.
func (g *Guardians) Prepare() {}

// Start calls the function Start. It ignores the deadline.
func (g *Guardians) Start(c Command, k Key, _ time.Time) (*Child, error) {
	if g.Lock != nil {
		if err := g.Lock.setRecord(0, k); err != nil {
			return nil, err
		}
	}
	return Start(c)
}

// Renew does nothing, because there are no deadlines.
func (g *Guardians) Renew([]Key, time.Time) {}

// Close clears the record. The caller has waited for each command.
func (g *Guardians) Close() bool {
	return g.Lock == nil || g.Lock.setRecord(0, Key{}) == nil
}

// Dedicate does nothing on this system.
func Dedicate() error { return nil }

// Deaths returns a channel that never receives on this system.
func Deaths() (deaths <-chan os.Signal, stop func()) { return nil, func() {} }

// ReapAdopted does nothing on this system.
func ReapAdopted() {}

// Sweep returns false: on this system it can't tell whether processes remain.
func Sweep(string, []Key, string) bool { return false }

// FindMarked returns nil: this system doesn't show the environment of a
// process.
func FindMarked() []MarkedProcess { return nil }

func ownCgroup() string   { return "" }
func removeCgroup(string) {}

// ResumeGuardians returns false: this system has no guardians.
func ResumeGuardians(string, int) bool { return false }

// SinceBoot returns 0: this system has no clock that counts the time in
// suspend.
func SinceBoot() time.Duration { return 0 }
