package exec

import (
	"cmp"
	"os"
)

// directory returns the directory in which the command runs: by default the
// worker's own, which may have been removed since the worker started.
//
// A hook must run even then: it's what tells people that something is wrong. So
// it runs in a new directory of the same path, or else in /. A task runs in the
// new directory or fails, because / may be the wrong place for it.
func (c *Command) directory() string {
	if c.Task.Cwd != "" {
		return c.Task.Cwd
	}
	if dir, err := os.Getwd(); err == nil {
		return dir
	}

	gone := cmp.Or(c.Worker.Dir, "unknown")
	if _, err := os.Stat(gone); err == nil || c.Task.Event == "" {
		return gone
	}

	c.dirGone.Do(func() { c.Log.Warn("the directory of the worker is gone; hooks run in /", "dir", gone) })
	return "/"
}
