package supervisor

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// # Problem
//
// A worker that is killed, or stopped past its leases, must not leave its commands running: others run its tasks again. It cannot
// kill them itself then. And a command can start processes that leave its session, clear their environment, change their user or outlive
// their parents; all of them must be dead before its attempt counts as over. So a worker has guardians: child processes that start commands on
// its behalf and kill all that these have started, when the attempt ends and when the worker goes.
//
// # Invariants
//
//   - A guardian guards one attempt at a time. It is a subreaper: a process whose parents have died becomes its child. So every child of the
//     guardian belongs to that attempt, whatever the child's environment, session or user, and the attempt is over when the guardian
//     has no child left. Processes of one attempt cannot hold up another attempt.
//   - The guardian forks and the guardian waits. There is no moment in which a command lives and its guardian does not know.
//   - The guardian signals no number that may have changed hands: it waits for no child while it signals.
//   - Worker and guardians hold the worker's liveness lock through one open file description. It is free only when all of them have ended. A
//     guardian writes its record in the lock file before it forks and clears it when its last child has ended. Whoever finds the lock free
//     knows by the records whether processes may have outlived a guardian.
//   - A command lives until its deadline at the longest, unless its worker renews its lease. Nothing holds that up: not a
//     worker that reads no messages, not another command.
//   - A command dies with its guardian (Pdeathsig). The worker finds what the command had started by the mark (mark_linux.go), kills that, and
//     then reports the attempt as lost.
//   - A process that the guardian may not kill, because it belongs to another user, is not waited for: the report names it. That guardian
//     takes no other attempt, and ends when the process has ended.
//
// # Outline
//
// Worker and guardian talk over a socketpair: frames of a length and fields, with descriptors on the first byte of a start (frame.go). The
// guardian has one thread for its attempts, which loops: take a start, fork, wait for children until the leader has ended, kill and wait for
// all other children, report. A second goroutine reads requests. Both wait in raw system calls at first (poll_linux.go). Deadlines are
// timers. The thread that forks lives as long as the process, because the kernel sends Pdeathsig when the forking thread ends.
//
// A worker starts a guardian when it has a command to start and no idle guardian (runner/guardian.go), and keeps it for later commands. So a
// start costs a message, and not the start of a process.
//
// Where the guardian may make a cgroup, it starts its commands in that (cgroup_linux.go). Then one write kills all processes of an attempt,
// those of other users included.
//
// # What was tried
//
// One guardian for all commands of a worker had to find out whose an orphan was, by its session and its environment. An orphan that showed
// neither held up the ends of all other attempts for a second, and lived as long as another attempt ran.
//
// Starting commands in the worker and registering them with a guardian leaves a moment in which a storm of starts leaves processes behind. A
// new guardian for each command costs the start of a process, 4 ms. A guardian that is the parent of the worker is not possible in a library.
//
// # Other systems
//
// Only Linux has guardians. Elsewhere the worker starts commands itself, and those of a killed worker live on. The record in its lock file
// then stays, so that others wait for its leases.

// guardianArg is the first argument of a guardian, which tells it from the host program's own uses.
const guardianArg = "runner-guardian"

// protocol is raised with every change of the messages.
const protocol = 3

// HasGuardians says whether this system has guardians.
const HasGuardians = runtime.GOOS == "linux"

// GuardianOptions say how StartGuardian starts one.
type GuardianOptions struct {
	Path    string // of a program that calls Guard first; empty: this one
	Version string // what that program must give to Guard
	Worker  string // the id of the worker, which is part of the marks
	Lock    *Lock  // of the worker
	Slot    int    // of the guardian's record in the lock file: no other living guardian of the worker has it
	Adopt   bool   // this process called Dedicate: what a dead guardian leaves becomes its child
}

const (
	helloTimeout = 20 * time.Second // for a guardian to start, on a small machine that has just booted
	sendTimeout  = 2 * time.Second  // for it to take a message
	closeTimeout = 5 * time.Second  // for it to end
)

// Key names an attempt: two numbers that the caller never uses twice together.
type Key struct {
	ID         int64
	Generation int64
}

// MarkedProcess is a process with the mark of an attempt.
type MarkedProcess struct {
	PID   int
	Name  string // as the kernel has it
	State string // the letter of ps; no signal reaches a process in state D
	UID   int    // its real user
	Mark  Mark
}

var (
	// ErrLost says that the guardian died, and the command with it.
	ErrLost = errors.New("the guardian of the command died")
	// ErrDeadline says that the guardian killed the command at its deadline.
	ErrDeadline = errors.New("the command was killed at the end of its lease")
	// ErrRefused says that a command was not started.
	ErrRefused = errors.New("the command was not started")
	// ErrGone says that the guardian had ended before it was told of the command.
	ErrGone = fmt.Errorf("%w: the guardian is gone", ErrRefused)
)

// The operations.
const (
	opStart = "start" // key, path, argv, env, dir, null, deadline; those of the descriptors 0, 1 and 2 that are not null
	opRenew = "renew" // key, deadline
	opKill  = "kill"  // key, signal, then KILL after so many ms
	opPing  = "ping"  // n
	opBye   = "bye"   // kill what is left, and exit

	opHello   = "hello"   // protocol, version, pid, why it cannot mark processes
	opStarted = "started" // key, pid
	opRefused = "refused" // key, why, errno
	opExited  = "exited"  // key, how it ended, by whom, what is left
	opPong    = "pong"    // n
)

// request is what a worker asks of its guardian.
type request struct {
	Op string
	Key
	Path     string
	Argv     []string
	Env      []string
	Dir      string
	Null     int   // bits: which of the descriptors 0, 1 and 2 are the null device, and not sent
	Deadline int64 // of CLOCK_MONOTONIC, ns
	Signal   int
	After    int64 // ms; 0: never
	N        int64
}

// reply is what a guardian tells its worker.
type reply struct {
	Op string
	Key
	Protocol int
	Version  string
	Pid      int
	Reason   string // of a refusal: late, stopping, exec; of a hello: an error
	Errno    int    // of exec
	EndedBy  string // who ended it: self, kill, deadline
	N        int64
	Exit     *Exit
}

const (
	reasonLate     = "late"
	reasonStopping = "stopping"
	reasonExec     = "exec"

	bySelf     = "self"
	byKill     = "kill"
	byDeadline = "deadline"
)
