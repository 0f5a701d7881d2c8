package supervisor

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// # Problem
//
// A worker that is killed, or stopped for longer than its leases, must not
// leave commands running, because other workers run its tasks again. It can't
// kill them itself. And a command can start processes that leave the session,
// clear their environment, change their user or outlive their parents. All of
// them must be dead before the attempt counts as over.
//
// So a worker has guardians. A guardian is a child process that starts commands
// for the worker. When the attempt ends, or the worker dies, it kills every
// process that the command has started.
//
// # Invariants
//
//   - A guardian runs one attempt at a time and is a subreaper: a process whose
//     parents have died becomes its child. So each of its children belongs to
//     that attempt, whatever environment, session or user the child has. The
//     attempt is over when no child is left, and attempts can't delay each
//     other.
//   - The guardian both forks a command and waits for it, so it knows every
//     command that runs.
//   - It never signals a pid that the kernel may have reused: while it sends
//     signals, it reaps no child.
//   - The worker and its guardians hold the worker's liveness lock through one
//     open file description, so the lock is free only when all of them are
//     gone. A guardian writes its record into the lock file before it forks,
//     and clears it when its last child has ended. Whoever takes the lock reads
//     the records and knows which attempts may have left processes.
//   - A command runs until its deadline at most, unless its worker renews the
//     lease. That holds even if the worker reads no messages, and other
//     commands can't delay it.
//   - A command dies with its guardian (Pdeathsig). The worker then finds the
//     command's descendants by parentage, cgroup and mark, kills them
//     (adopt_linux.go, sweep_linux.go) and reports the attempt as lost.
//   - A guardian doesn't wait for a process of another user that it may not
//     kill. Its report names that process. It starts no other attempt, and
//     exits when that process has ended.
//   - A command with LeaveChildren that ends by itself may leave processes
//     behind. The guardian moves them out of its cgroup and clears its record
//     (leaveRemaining), so no sweep looks for them. Then it exits, so no child
//     of a guardian belongs to an earlier attempt.
//
// # Outline
//
// Worker and guardian exchange JSON objects over a socketpair. The first byte
// of a start message carries the descriptors. The guardian runs attempts on one
// thread: it receives a start, forks, waits for children until the leader has
// ended, kills and reaps all others, and reports. A second goroutine reads
// requests. Both first wait in a raw system call (poll_linux.go). Deadlines are
// timers. The forking thread lives as long as the process, because the kernel
// sends Pdeathsig when that thread ends.
//
// A worker starts a guardian when a command has to start and none is idle
// (guardians_linux.go), and keeps it for later commands. Starting a command
// then costs a message instead of a process.
//
// A guardian that may create a cgroup starts its commands in it
// (cgroup_linux.go). One write then kills all processes of an attempt,
// including those of other users.
//
// # What was tried
//
// At first, one guardian ran all commands of a worker and told orphans apart by
// session and environment. An orphan that had left the one and cleared the
// other delayed every other attempt's end by a second, and lived as long as any
// attempt ran.
//
// If the worker starts commands and then registers them with a guardian, a
// worker killed in between leaves the command running.
//
// A new guardian for each command costs the start of a process: 4 ms.
//
// A guardian could be the worker's parent, but a library can't choose the
// parent of its process.
//
// # Other systems
//
// Only Linux has guardians. Elsewhere the worker starts commands itself, and
// the commands of a killed worker run on. Their records stay in the lock file,
// so other workers wait until the leases expire.

// guardianArg is the first argument of a guardian. It tells a guardian from
// other processes of the same program.
const guardianArg = "runner-guardian"

// HasGuardians reports whether this system has guardians.
const HasGuardians = runtime.GOOS == "linux"

// GuardiansOptions are the options of NewGuardians.
type GuardiansOptions struct {
	Path    string // program that calls Guard first in main; default: this program
	Version string // what the program passes to Guard
	Worker  string // id of the worker; part of the marks of its commands
	Lock    *Lock  // the worker's liveness lock, which its guardians hold too; nil on Windows
	Log     *slog.Logger
	Fail    func(error) // ends the worker with an error
}

const (
	helloTimeout = 20 * time.Second // for a guardian's start; enough for a small machine that has just booted
	sendTimeout  = 2 * time.Second  // for a guardian to read a message
	closeTimeout = 5 * time.Second  // for a guardian to exit
)

// Key identifies an attempt. The caller uses each pair of ID and Generation
// only once.
type Key struct {
	ID         int64
	Generation int64
}

// Mark names the attempt that a process belongs to. It consists of three
// variables in the environment of the command, which child processes inherit.
//
// A living guardian knows its processes by parentage. The mark is for other
// programs: a worker whose guardian was killed, a worker that takes over from
// a dead one, and runner doctor. They don't see it in a process that has
// cleared or hidden its environment, or that another user runs.
type Mark struct {
	Worker string
	Key
}

const (
	workerVariable     = "RUNNER_WORKER_ID"
	taskVariable       = "RUNNER_TASK_ID"
	generationVariable = "RUNNER_TASK_GENERATION"
)

// Environ returns the variables of the mark. They belong into Command.Env.
func (m Mark) Environ() []string {
	return []string{
		workerVariable + "=" + m.Worker,
		taskVariable + "=" + strconv.FormatInt(m.ID, 10),
		generationVariable + "=" + strconv.FormatInt(m.Generation, 10),
	}
}

// MarkedProcess is a process of an attempt.
type MarkedProcess struct {
	PID   int
	Name  string // command name that the kernel reports
	State string // letter as in ps; a process in state D receives no signal
	UID   int    // real user id
	Mark  Mark   // only FindMarked sets it
}

var (
	// ErrLost means that the guardian died, and the command with it.
	ErrLost = errors.New("the guardian of the command died")

	// ErrDeadline means that the guardian killed the command at its deadline.
	ErrDeadline = errors.New("the command was killed at the end of its lease")

	// ErrRefused means that the command wasn't started.
	ErrRefused = errors.New("the command was not started")

	// errGone means that the guardian exited before it got the command.
	errGone = fmt.Errorf("%w: the guardian is gone", ErrRefused)
)

// These are the operations of a message, with the fields that it has.
const (
	opStart = "start" // starts a command: key, words, args, deadline, leave, resources, and descriptors
	opRenew = "renew" // moves an attempt's deadline, if it has a key, and asks for a pong: key, deadline, n
	opKill  = "kill"  // signals a command: key, signal
	opBye   = "bye"   // the guardian kills what remains and exits

	opHello   = "hello"   // first message of a guardian: version
	opRefused = "refused" // the command wasn't started: key, reason, errno
	opExited  = "exited"  // an attempt has ended: key, exit (with the processes that remain), late
	opPong    = "pong"    // answers a renewal with its number: n
)

// request is a message from a worker to its guardian.
type request struct {
	Op string
	Key
	Words    []byte // path, directory, arguments and variables, with NUL in between; not always UTF-8
	Args     int    // number of arguments in Words
	Deadline int64  // CLOCK_MONOTONIC, in nanoseconds
	Signal   int
	N        int64
	Leave    bool // see Command.LeaveChildren
	Resources
}

func (r *request) words() (path, dir string, argv, env []string) {
	words := strings.Split(string(r.Words), "\x00")
	return words[0], words[1], words[2 : 2+r.Args], words[2+r.Args:]
}

// reply is a message from a guardian to its worker.
type reply struct {
	Op string
	Key
	Version string
	Reason  string // why the command wasn't started
	Errno   int    // of a failed exec
	Late    bool   // whether the command was killed because its deadline had passed
	N       int64
	Exit    *Exit
}

// failure returns the error of a command that wasn't started.
func (r *reply) failure() error {
	switch errno := syscall.Errno(r.Errno); {
	case r.Reason == reasonExec:
		return &os.PathError{Op: "fork/exec", Err: errno}
	case errno != 0:
		return &ResourceError{r.Reason, errno}
	default:
		return fmt.Errorf("%w: %s", ErrRefused, r.Reason)
	}
}

const (
	reasonLate     = "its deadline has passed"
	reasonStopping = "the start was cancelled"
	reasonExec     = "exec"
)
