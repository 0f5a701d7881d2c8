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
// A worker that is killed, or stopped for longer than its leases, must not leave its commands running, because other
// workers run its tasks again. Such a worker cannot kill the commands itself. A command can also start processes that
// leave the session, clear their environment, change their user or outlive their parents. All of these processes must
// be dead before the attempt counts as over.
//
// So a worker has guardians. A guardian is a child process that starts commands for the worker. It kills every process
// that a command has started when the attempt ends, and when the worker dies.
//
// # Invariants
//
//   - A guardian runs one attempt at a time. It is a subreaper, so a process whose parents have died becomes its child.
//     Every child of the guardian therefore belongs to that attempt, whatever the environment, session or user of the
//     child. The attempt is over when the guardian has no child left. The processes of one attempt cannot delay another
//     attempt.
//   - The guardian both forks the command and waits for it. So the guardian knows every command that runs.
//   - The guardian never signals a pid that the kernel may have reused, because it waits for no child while it sends
//     signals.
//   - The worker and its guardians hold the liveness lock of the worker through one open file description. The lock is
//     free only when all of them have ended. A guardian writes its record in the lock file before it forks. It clears
//     the record when its last child has ended. A process that takes the lock reads the records and learns which
//     attempts may have left processes.
//   - A command runs until its deadline at most, unless its worker renews the lease. The deadline also holds if the
//     worker reads no messages, and other commands cannot delay it.
//   - A command dies with its guardian (Pdeathsig). The worker finds the descendants of the command by their parentage,
//     their cgroup and their mark, and kills them (adopt_linux.go, sweep_linux.go). Then it reports the attempt as lost.
//   - The guardian does not wait for a process that it is not permitted to kill because another user owns it. The
//     report names that process. The guardian then starts no other attempt, and exits when that process has ended.
//   - A command with LeaveChildren that ends by itself may leave processes behind. The guardian moves them out of its
//     cgroup and clears its record (leaveRemaining), so no sweep looks for them. It then exits without killing them, so
//     no child of a guardian belongs to an earlier attempt.
//
// # Outline
//
// The worker and the guardian exchange JSON objects over a socketpair; the first byte of a start message carries the
// descriptors. The guardian runs attempts on one thread, in a loop. The thread
// receives a start, forks, and waits for children until the leader has ended. It then kills and reaps all other
// children, and reports. A second goroutine reads requests. The thread and the goroutine first wait for an event
// in a raw system call (poll_linux.go). Deadlines are timers. The forking thread lives as long as the process, because the kernel sends
// Pdeathsig when the forking thread ends.
//
// A worker starts a guardian when it has a command to start and no idle guardian (guardians_linux.go). It keeps the
// guardian for later commands. Starting a command then costs a message instead of a process.
//
// If the guardian may create a cgroup, it starts its commands in that cgroup (cgroup_linux.go). One write then kills
// all processes of an attempt, including those of other users.
//
// # What was tried
//
// The first design had one guardian for all commands of a worker. The guardian had to find the attempt of an orphan by
// its session and environment. An orphan could leave the session and clear its environment. Such an orphan delayed the
// end of all other attempts by a second, and lived as long as any other attempt ran.
//
// In another design the worker starts each command itself and then registers it with a guardian. A worker that is
// killed between the start and the registration leaves the command running.
//
// A new guardian for each command costs the start of a process, which takes 4 ms.
//
// A guardian could be the parent of the worker, but a library cannot choose the parent of its process.
//
// # Other systems
//
// Only Linux has guardians. On other systems the worker starts commands itself, and the commands of a killed worker
// continue to run. The records of these commands stay in the lock file, so other workers wait until the leases expire.

// guardianArg is the first argument of a guardian process. It distinguishes a guardian from other processes of the same
// program.
const guardianArg = "runner-guardian"

// HasGuardians reports whether this system has guardians.
const HasGuardians = runtime.GOOS == "linux"

// GuardiansOptions are the options of NewGuardians.
type GuardiansOptions struct {
	Path    string // program that calls Guard first in main; default: this program
	Version string // version that the program passes to Guard
	Worker  string // id of the worker; part of the marks of its commands
	Lock    *Lock  // liveness lock of the worker, which its guardians hold too; nil on systems without such locks
	Log     *slog.Logger
	Fail    func(error) // called to end the worker with an error
}

const (
	helloTimeout = 20 * time.Second // time limit for the start of a guardian; long enough for a small machine that has just booted
	sendTimeout  = 2 * time.Second  // time limit for a guardian to read a message
	closeTimeout = 5 * time.Second  // time limit for a guardian to exit
)

// Key identifies an attempt. The caller uses each pair of ID and Generation for one attempt only.
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
	State string // state letter as in ps; a process in state D receives no signal
	UID   int    // real user id
	Mark  Mark   // only FindMarked sets it
}

var (
	// ErrLost means that the guardian died, and the command with it.
	ErrLost = errors.New("the guardian of the command died")
	// ErrDeadline means that the guardian killed the command at its deadline.
	ErrDeadline = errors.New("the command was killed at the end of its lease")
	// ErrRefused means that the command was not started.
	ErrRefused = errors.New("the command was not started")
	// errGone means that the guardian exited before it got the command.
	errGone = fmt.Errorf("%w: the guardian is gone", ErrRefused)
)

// These are the operations. The comment of each operation says what its message means, and lists the fields of the message.
const (
	// opStart asks the guardian to start a command, whose descriptors 0, 1 and 2 come with the message. Fields: key, words, args,
	// deadline, leave, resources.
	opStart = "start"
	opRenew = "renew" // moves the deadline of an attempt, if it has a key, and asks for an opPong message; fields: key, deadline, n
	opKill  = "kill"  // asks the guardian to send a signal to a command; fields: key, signal
	opBye   = "bye"   // asks the guardian to kill the remaining processes and exit; no fields

	opHello   = "hello"   // the first message of a guardian; field: version
	opRefused = "refused" // reports that the command was not started; fields: key, reason, errno
	opExited  = "exited"  // reports the end of an attempt; fields: key, exit (with the processes that remain), late
	opPong    = "pong"    // answers an opRenew message with the same number; field: n
)

// request is a message from a worker to its guardian.
type request struct {
	Op string
	Key
	Words    []byte // path, directory, arguments and variables of the command with NUL between them; they needn't be UTF-8
	Args     int    // number of arguments in Words
	Deadline int64  // CLOCK_MONOTONIC, in nanoseconds
	Signal   int
	N        int64
	Leave    bool // whether the processes that the command leaves behind may live on; see Command.LeaveChildren
	Resources
}

// words splits the parts of a command.
func (r *request) words() (path, dir string, argv, env []string) {
	words := strings.Split(string(r.Words), "\x00")
	return words[0], words[1], words[2 : 2+r.Args], words[2+r.Args:]
}

// reply is a message from a guardian to its worker.
type reply struct {
	Op string
	Key
	Version string
	Reason  string // why the command was not started
	Errno   int    // error number of a failed exec
	Late    bool   // whether the command was killed because its deadline had passed
	N       int64
	Exit    *Exit
}

// failure returns the error of a command that was not started.
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

	// Each of these reasons names the resource that could not be applied to the command.
	reasonNice   = "nice"
	reasonIONice = "ionice"
	reasonMemory = "memory"
	reasonCPU    = "cpu"
)
