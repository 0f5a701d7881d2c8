// Package supervisor starts a command detached from the terminal and the signals of its parent, and stops all processes
// of the command.
//
// # Problem
//
// A command is more than one process. Shells fork, and scripts leave processes in the background. A signal to the first
// process does not reach the others. So each command leads a session and a process group of its own (on Windows: it has
// a Job Object of its own). Signals go to the whole group. The attempt of the command is over when the first process,
// the leader, has ended and the processes that it left behind are dead. So left-over processes cannot run beside the
// next attempt or keep a pipe open.
//
// # Systems
//
// On Linux a guardian starts the commands of a worker (guardian.go). A guardian is a process that outlives its worker
// until it has killed every process of its command.
//
// On other systems the worker starts commands directly (process.go). There, the commands of a killed worker continue to
// run, also after its leases expire, and nothing finds them. The package is tested on Linux, together with the code of
// the other Unix systems. The code for Windows is only compiled.
//
// The package handles paths, pids and signals. It does not know the purpose of a command.
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
	Path string   // file to execute, without a lookup in PATH and without a shell; a relative path is relative to Dir
	Argv []string // program name and arguments, passed byte for byte (Windows: quoted into one line)
	Env  []string // whole environment; nil means empty
	Dir  string   // absolute path of the working directory; default: the caller's own, or / under a guardian

	// Stdin, Stdout and Stderr are the descriptors 0, 1 and 2. A nil file is the null device. The caller closes these files. Start sets
	// pipes to blocking mode.
	Stdin, Stdout, Stderr *os.File

	// LeaveChildren spares the processes that the leader leaves behind when it exits by itself, with any exit status. They are killed if
	// the leader was stopped, if a signal ended it, or if its deadline has passed.
	LeaveChildren bool

	// Resources are applied by a guardian only.
	Resources Resources
}

// Resources are the user and the resources of a command. The zero Resources change nothing.
type Resources struct {
	User       *User // user that the command runs as; nil for the user of the worker
	Nice       int   // niceness of the processes; 0 for the niceness of the worker
	IOPriority int   // disk priority in the format of ioprio_set; 0 for the priority of the worker
	Memory     int64 // bytes of memory and swap of all processes together; 0 for no limit
	CPU        int   // CPU time of all processes together, in percent of one CPU; 0 for no limit
}

// User is the identity that a command gets.
type User struct {
	UID, GID int
	Groups   []int // supplementary groups
}

// ResourceError means that a command was not started because one of its Resources could not be applied.
type ResourceError struct {
	Resource string // nice, ionice, memory or cpu
	Err      error
}

func (e *ResourceError) Error() string { return e.Resource + ": " + e.Err.Error() }
func (e *ResourceError) Unwrap() error { return e.Err }

// Exit describes how the leader ended, and which processes of the command were left.
type Exit struct {
	Code   int // exit status; -1 after a signal; 1 after Kill on Windows
	Signal int // signal that ended the leader; 0 if none did, and always 0 on Windows
	// LeftOver is the number of processes that outlived the leader and were killed. It is 0 after Kill, and on
	// systems other than Linux.
	LeftOver int
	// Left is the number of processes that live on because of Command.LeaveChildren. It is 0
	// on systems other than Linux.
	Left int
	// Denied are processes of the command that live on because this user is not permitted to kill them. Only a guardian
	// reports them.
	Denied []MarkedProcess
	// OutOfMemory is true if the kernel killed processes of the command because of Resources.Memory.
	OutOfMemory bool
	// Usage has the resources that the processes of the command used. It omits processes that live on.
	Usage Usage
}

// Usage is the amount of resources that a command used. Systems other than Linux report only the
// CPU time. A value that is not known is 0.
type Usage struct {
	User, System  time.Duration // CPU time of all processes
	MaxRSS        int64         // largest resident set of a process, in bytes
	Read, Written int64         // bytes that the processes read from disks and wrote to disks
}

// add adds the usage of another process.
func (u *Usage) add(o Usage) {
	u.User, u.System, u.MaxRSS = u.User+o.User, u.System+o.System, max(u.MaxRSS, o.MaxRSS)
	u.Read, u.Written = u.Read+o.Read, u.Written+o.Written
}

// files returns the files of the descriptors 0, 1 and 2. The caller closes null after the start.
func (c *Command) files() (files []*os.File, null *os.File, err error) {
	null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	return []*os.File{cmp.Or(c.Stdin, null), cmp.Or(c.Stdout, null), cmp.Or(c.Stderr, null)}, null, nil
}

// OutOfResources reports whether Start failed because the machine lacks a process, memory or a descriptor. The same
// command may start successfully a little later.
func OutOfResources(err error) bool {
	return slices.ContainsFunc(resourceErrors, func(t syscall.Errno) bool { return errors.Is(err, t) })
}
