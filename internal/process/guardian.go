package process

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"
)

// # Problem
//
// A worker that is killed, or stopped past its leases, must not leave its commands running: others run its tasks again. It cannot
// kill them itself then. So each worker has a guardian, one long-lived child process that starts the commands on its behalf, as
// their parent, and kills all of them when the worker goes.
//
// # Invariants
//
//   - Who forks is who cleans up: there is no moment in which a command lives and the guardian does not know.
//   - The guardian is a subreaper: whatever a command leaves behind (background, nohup, setsid, double fork) becomes the
//     guardian's child when its parents are dead. Parentage cannot be shed.
//   - Nothing is signalled by a number that may have changed hands: a child is not waited for before it has been dealt with.
//   - The worker's liveness lock is held by both through one open file description. So it is free only when the worker is dead and
//     the guardian has ended, which it does when it has no child left. The mark in the lock file is Dirty before the first fork and
//     Clean after the last child, so whoever finds the lock free knows whether the guardian was killed too.
//   - A command lives until its deadline at the longest, unless a renewal of its lease came through. No write to the worker, and no
//     start of another command, can hold that up.
//   - Commands die with the guardian (Pdeathsig), and what they started comes to the worker if that is a subreaper; it sweeps for
//     the rest, and then reports what was running as lost.
//
// # Outline
//
// Worker and guardian talk over a socketpair: frames of a length and JSON, descriptors on the header of a start. In the guardian
// these loops never wait for each other: the reader takes requests; two forkers, on threads of their own for life, because the
// kernel sends Pdeathsig when the forking thread ends, start commands; the reaper waits for children; the writer has a queue
// without a limit, because a worker that is stopped reads nothing. Deadlines are timers.
//
// When a leader ends, its group is killed while it is a zombie, then all children of the main thread that belong to its attempt, by
// session or by the variables of their environment: the forkers' threads have the leaders, so what the main thread has was orphaned.
// Ends of children are followed by another look, until none of the attempt is left. Only then is the end reported; not while an orphan is in
// exec, when it shows no environment, or has ended since it was listed.
//
// # What was tried
//
// Starting directly from the worker and registering with the guardian leaves a window in which each storm of starts left processes
// behind; looking for them by environment misses those that cleared it. A shim for each command costs 4 ms, this 0.2 ms; 8 slots on
// two processors keep 0.84 of the rate of direct starts, with one forker 0.77 (BenchmarkGuardianPrice). A guardian that is the parent
// of the worker cannot be had in a library.
//
// # Elsewhere
//
// On systems other than Linux there is no guardian yet: commands are started directly, and those of a killed worker live on. The
// mark in its lock file then stays Dirty, so that others wait for its leases.

// guardianWord is the first argument of a guardian, which tells it from the host program's own uses.
const guardianWord = "runner-guardian"

// protocol is raised with every change of the messages.
const protocol = 1

// frameMost limits a frame: arguments and environments are far smaller.
const frameMost = 16 << 20

// Guarded says whether this system has guardians.
const Guarded = runtime.GOOS == "linux"

// GuardianOptions say how StartGuardian starts one.
type GuardianOptions struct {
	Path    string // of a program that calls Guard first; empty: this one
	Version string // what that program must give to Guard
	Worker  string // what commands have as RUNNER_WORKER_ID
	Lock    *Lock  // of the worker
	Adopt   bool   // this process called Dedicate: what a dead guardian leaves becomes its child
}

const (
	helloLimit = 20 * time.Second // for a guardian to start, on a small machine that has just booted
	sendLimit  = 2 * time.Second  // for it to take a message
	byeLimit   = 5 * time.Second  // for it to end
)

// Key names an attempt: two numbers that the caller never uses twice together.
type Key struct {
	ID         int64 `json:"id"`
	Generation int64 `json:"gen"`
}

// Tagged is a process that was given the variables of a command.
type Tagged struct {
	PID    int
	Name   string // as the kernel has it
	State  string // the letter of ps: D is one that no signal reaches
	Worker string
	Key
}

var (
	// ErrLost says that the guardian died, and the command with it.
	ErrLost = errors.New("the guardian of the command died")
	// ErrDeadline says that the guardian killed the command at its deadline.
	ErrDeadline = errors.New("the command was killed at the end of its lease")
	// ErrRefused says that a command was not started.
	ErrRefused = errors.New("the command was not started")
)

// The operations. Texts of the system are byte slices, since JSON would change what is no UTF-8.
const (
	opStart = "start" // key, path, argv, env, dir, deadline; descriptors 0, 1 and 2
	opRenew = "renew" // deadline, keys
	opKill  = "kill"  // key, signal, then KILL after so many ms
	opPing  = "ping"  // n
	opBye   = "bye"   // kill what is left, and exit

	opHello   = "hello"   // protocol, version, pid
	opStarted = "started" // key, pid
	opRefused = "refused" // key, why, errno
	opExited  = "exited"  // key, how it ended, by whom, left over
	opPong    = "pong"    // n
)

// request is what a worker asks of its guardian.
type request struct {
	Op string `json:"op"`
	Key
	Path     []byte   `json:"path,omitempty"`
	Argv     [][]byte `json:"argv,omitempty"`
	Env      [][]byte `json:"env,omitempty"`
	Dir      []byte   `json:"dir,omitempty"`
	Deadline int64    `json:"deadline,omitempty"` // of CLOCK_MONOTONIC, ns
	Keys     []Key    `json:"keys,omitempty"`
	Signal   int      `json:"signal,omitempty"`
	After    int64    `json:"after,omitempty"` // ms; 0: never
	N        int64    `json:"n,omitempty"`
}

// reply is what a guardian tells its worker.
type reply struct {
	Op string `json:"op"`
	Key
	Protocol int    `json:"protocol,omitempty"`
	Version  string `json:"version,omitempty"`
	Pid      int    `json:"pid,omitempty"`
	Why      string `json:"why,omitempty"`   // of a refusal: late, stopping, exec
	Errno    int    `json:"errno,omitempty"` // of exec
	By       string `json:"by,omitempty"`    // who ended it: self, kill, deadline
	Exit     *Exit  `json:"exit,omitempty"`
	N        int64  `json:"n,omitempty"`
}

const (
	whyLate     = "late"
	whyStopping = "stopping"
	whyExec     = "exec"

	bySelf     = "self"
	byKill     = "kill"
	byDeadline = "deadline"
)

// frame returns a message as it is sent.
func frame(message any) ([]byte, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if len(text) > frameMost {
		return nil, fmt.Errorf("message of %d bytes", len(text))
	}
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(text)), uint32(len(text))), text...), nil
}

// readBody reads the message that follows a header.
func readBody(r io.Reader, header [4]byte, message any) error {
	size := binary.BigEndian.Uint32(header[:])
	if size > frameMost {
		return fmt.Errorf("frame of %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}
