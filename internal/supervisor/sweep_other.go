//go:build !linux

package supervisor

// Mark names the attempt of a process on systems that have marks.
type Mark struct{}

// MarkOf returns a mark that no process has.
func MarkOf(string, Key) Mark { return Mark{} }

// Of says that a mark is of no worker.
func (Mark) OwnedBy(string) bool { return false }

// Task returns no task.
func (Mark) Task() int64 { return 0 }

// Sweep finds nothing on this system, and so cannot tell that nothing is left.
func Sweep(string, []Key, []Record) ([]MarkedProcess, bool) { return nil, false }

// FindMarked finds nothing on this system.
func FindMarked() []MarkedProcess { return nil }

// SetMark does nothing on this system.
func SetMark(int, Mark) error { return nil }

func ownCgroup() string   { return "" }
func removeCgroup(string) {}
