//go:build !linux

package supervisor

// Mark has no content, because this system has no marks.
type Mark struct{}

// MarkOf returns a mark that no process has.
func MarkOf(string, Key) Mark { return Mark{} }

// OwnedBy returns false.
func (Mark) OwnedBy(string) bool { return false }

// Task returns 0.
func (Mark) Task() int64 { return 0 }

// Sweep returns false: this system has no marks, so Sweep cannot tell whether processes remain.
func Sweep(string, []Key, []Record) ([]MarkedProcess, bool) { return nil, false }

// FindMarked returns nil: this system has no marks.
func FindMarked() []MarkedProcess { return nil }

// SetMark does nothing on this system.
func SetMark(int, Mark) error { return nil }

func ownCgroup() string   { return "" }
func removeCgroup(string) {}
