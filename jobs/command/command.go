// Package command describes the command of a task, for jobs.Command. A program
// that enqueues functions only doesn't need it.
//
//	spec := jobs.Command(command.Command{
//		Argv:     []string{"rsync", "-a", "/srv", "backup:"},
//		Settings: command.Settings{RetryOn: "10-12,30"},
//	}, jobs.MaxAttempts(5), jobs.Timeout(time.Hour))
package command

import (
	"runtime"
	"time"
)

// Job is the name of the job that runs commands. It is reserved.
const Job = "command"

// Command is a program with its arguments. It runs without a shell, and its
// arguments are passed unchanged. Shell makes a command that uses a shell.
type Command struct {
	Argv    []string
	Path    string            // absolute path of the program; if empty, the worker looks up Argv[0] in its PATH
	Dir     string            // absolute path of the working directory; if empty, that of the worker
	Env     map[string]string // added to the worker's environment; stored in the database
	EnvFile string            // absolute path of a file of NAME=VALUE lines, read at each start and never stored
	Input   []byte            // standard input; if nil, /dev/null
	Settings
}

// Shell returns a command that runs a script in the system's shell: /bin/sh -c,
// or cmd.exe on Windows.
func Shell(script string) Command {
	if runtime.GOOS == "windows" {
		return Command{Argv: []string{"cmd.exe", "/d", "/s", "/c", script}}
	}
	return Command{Argv: []string{"/bin/sh", "-c", script}, Path: "/bin/sh"}
}

// Settings say how a command runs and ends. In a Command, 0 stands for the
// default, and a negative value for none. A jobs.Spec and a jobs.Task have the
// values that apply: 10 s or 1 MiB instead of 0, and 0 for none.
type Settings struct {
	// KillAfter is the time between SIGTERM and SIGKILL when the command is
	// stopped. Defaults to 10 s.
	KillAfter time.Duration
	// RetryOn are the exit codes after which the command is retried. Any other
	// exit code fails the task at once. A command that dies by a signal, times
	// out or can't be started is always retried. Defaults to every exit code.
	RetryOn Codes
	// OutputLimit is how many bytes of an attempt's output are stored. If the
	// output is longer, its start and its end are stored. The start has half of
	// the limit, but at most 64 KiB, and the end has the rest. Defaults to 1
	// MiB.
	OutputLimit int64
	// LeaveChildren lets processes that the command has started, such as a
	// daemon, live on after the command has exited by itself. Otherwise they
	// are killed. A timeout, a cancellation and the loss of the worker kill the
	// processes in any case.
	LeaveChildren bool
	Resources
	Hooks
}

// Codes is a set of exit codes from 1 to 255, such as "75,100-111". The empty
// set stands for any code. Enqueue returns jobs.ErrInvalid for any other
// text.
type Codes string

// Resources are the user and the resources of a command. Only workers on Linux
// can apply them. If a worker cannot apply one of them, the attempt fails with
// jobs.ReasonStart, and the command does not run.
type Resources struct {
	// name or id of the user that runs the command; if empty, the user of the
	// worker. For another user, the worker must run as root
	User   string
	Nice   int    // niceness, from -20 to 19; 0 for the niceness of the worker. A lower value than that of the worker needs root
	IONice string // priority of disk access: "idle", "best-effort" or "best-effort:0" to ":7", or as root "realtime"; empty for the default
	Memory int64  // bytes of memory and swap of all processes together, at least 1 MiB; 0 for no limit. It needs a control group
	CPU    string // CPU time as a part of one CPU, such as "50%" or "200%"; empty for no limit. It needs a control group
}

// Hooks are commands that run because a task has ended. Each command is a line
// for the shell of the worker's system: /bin/sh -c, or cmd.exe on Windows. An
// empty line stands for no command.
//
// A hook is a task of its own. The transaction that ends the original task
// enqueues the hook, so a crash cannot lose it. The hook goes to the queue of
// the original task and starts before the other tasks there. It runs for at
// most a minute, and up to 10 times until it succeeds. Variables named
// RUNNER_EVENT… describe the original task, and the standard input has the last
// lines of its output. The end of a hook does not run other hooks.
type Hooks struct {
	OnFailure string // command that runs when the task has failed and is not retried
	OnSuccess string // command that runs when the task has completed
	// OnRecovery is the command that runs when the task has completed and its
	// predecessor had failed. The predecessor is the previous task of the same
	// schedule, or the previous task with the same unique key.
	OnRecovery string
	OnOutput   string // command that runs when the task has completed or failed, and its last attempt has printed something
}

// Usage is the amount of resources that the processes of a command used in one
// attempt. It is zero if it is not known: for a function, a lost attempt and an
// attempt that runs. Systems other than Linux report only the CPU time.
type Usage struct {
	User, System  time.Duration // CPU time of all processes
	MaxRSS        int64         // largest resident set of one process, in bytes
	Read, Written int64         // bytes read from disks and written to disks
}
