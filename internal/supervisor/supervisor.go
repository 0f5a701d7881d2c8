// Package supervisor starts a command detached from its parent's terminal and
// signals, and stops all of its processes.
//
// # Problem
//
// A command is more than one process. Shells fork, and scripts leave processes
// in the background. A signal to the first process doesn't reach the others. So
// each command leads a session and a process group of its own (on Windows it
// has a Job Object), and signals go to the whole group. The attempt is over
// when the first process, the leader, has ended and those that it left behind
// are dead. They can't run beside the next attempt or keep a pipe open.
//
// # Systems
//
// On Linux a guardian starts a worker's commands (guardian.go): a process that
// outlives its worker until it has killed every process of its command.
//
// On other systems the worker starts commands directly (process.go). There, the
// commands of a killed worker run on, even after its leases expire, and nothing
// finds them. The package is tested on Linux, together with the code of the
// other Unix systems. The code for Windows is only compiled.
//
// The package handles paths, pids and signals. It doesn't know what a command
// is for.
package supervisor

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"
)

// Command describes a command for Start.
type Command struct {
	Path string   // file to execute, without PATH or a shell; relative to Dir
	Argv []string // program name and arguments, passed byte for byte (Windows: quoted into one line)
	Env  []string // whole environment; nil means empty
	Dir  string   // absolute working directory; default: the caller's own, or / under a guardian

	// Stdin, Stdout and Stderr are the descriptors 0, 1 and 2; nil is the null
	// device. The caller closes them. Start sets pipes to blocking mode.
	Stdin, Stdout, Stderr *os.File

	// LeaveChildren spares the processes that the leader leaves behind when it
	// exits by itself, with any status. They are killed if the leader was
	// stopped, ended by a signal, or past its deadline.
	LeaveChildren bool

	// Resources are applied by a guardian only.
	Resources Resources
}

// Resources are the user and the resources of a command. The zero Resources
// change nothing.
type Resources struct {
	User       *User // user that the command runs as; nil for the worker's
	Nice       int   // niceness of the processes; 0 for the worker's
	IOPriority int   // disk priority in the format of ioprio_set; 0 for the worker's
	Memory     int64 // bytes of memory and swap of all processes together; 0 for no limit
	CPU        int   // CPU time of all processes together, in percent of one CPU; 0 for no limit
}

// User is the identity that a command gets.
type User struct {
	UID, GID int
	Groups   []int // supplementary groups
}

// ResourceError means that a command wasn't started because one of its
// Resources couldn't be applied.
type ResourceError struct {
	Resource string // nice, ionice, memory or cpu
	Err      error
}

func (e *ResourceError) Error() string { return e.Resource + ": " + e.Err.Error() }
func (e *ResourceError) Unwrap() error { return e.Err }

// Exit describes how the leader ended, and which processes of the command were
// left. LeftOver and Left are 0 on systems other than Linux.
type Exit struct {
	Code        int             // exit status; -1 after a signal; 1 after Kill on Windows
	Signal      int             // signal that ended the leader; 0 if none did, and always 0 on Windows
	LeftOver    int             // how many processes outlived the leader and were killed; 0 after Kill
	Left        int             // how many processes live on because of Command.LeaveChildren
	Denied      []MarkedProcess // what lives on because a guardian may not kill it
	OutOfMemory bool            // whether the kernel killed processes because of Resources.Memory
	Usage       Usage           // what the processes used, without those that live on
}

// Usage is what a command used. Systems other than Linux report only the CPU
// time. A value that isn't known is 0.
type Usage struct {
	User, System  time.Duration // CPU time of all processes
	MaxRSS        int64         // largest resident set of a process, in bytes
	Read, Written int64         // bytes that the processes read from disks and wrote to disks
}

func (u *Usage) add(o Usage) {
	u.User += o.User
	u.System += o.System
	u.MaxRSS = max(u.MaxRSS, o.MaxRSS)
	u.Read += o.Read
	u.Written += o.Written
}

// files returns the files of the descriptors 0, 1 and 2. The caller closes null
// after the start.
func (c *Command) files() (files []*os.File, null *os.File, err error) {
	null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}

	return []*os.File{cmp.Or(c.Stdin, null), cmp.Or(c.Stdout, null), cmp.Or(c.Stderr, null)}, null, nil
}

// OutOfResources reports whether Start failed because the machine lacks a
// process, memory or a descriptor. A little later the same command may start.
func OutOfResources(err error) bool {
	return slices.ContainsFunc(resourceErrors, func(t syscall.Errno) bool { return errors.Is(err, t) })
}
