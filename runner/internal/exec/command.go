package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/supervisor"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Worker has the data that all commands of a worker share.
type Worker struct {
	Store     *db.DB
	Guardians *supervisor.Guardians
	Environ   []string // environment of the worker, without the variables that the function Environ removes
	Dir       string   // absolute path of the worker's directory when it started; empty if unknown
	Log       *slog.Logger

	dirGone sync.Once // whether the worker has logged that Dir is gone
}

// Command is one attempt of a task that runs a command.
type Command struct {
	*Worker
	Task     jobs.Task
	Stdin    *os.File         // stdin of a task without input; nil for /dev/null
	Stop     context.Context  // when this context ends, the command gets TERM, and KILL if it still runs after Task.KillAfter
	Kill     <-chan struct{}  // channel that is closed to send KILL to the command, without a grace period
	Deadline func() time.Time // Deadline returns the time at which the guardian kills the command, unless a heartbeat renews the lease
	Output   *Capture
	PagesURL string // URL under which the web pages are; empty if it is unknown

	// Run sets these two numbers. They count the processes that the command
	// left behind when it exited by itself: those that were killed, and those
	// that live on because of Task.LeaveChildren.
	ChildrenKilled, ChildrenLeft int
	// Run sets Usage to the resources that the command used.
	Usage command.Usage

	account *account // user that runs the command; nil for the user of the worker
	dir     string   // directory of the files that the command shares with the worker; empty for Store.Dir()
}

// The exit codes that shells use for a command that could not be started. They
// become the exit code of an attempt that ends with ReasonStart.
const (
	cannotExecute = 126
	notFoundCode  = 127
)

// NotStartedError reports that a command was not started for a reason that lies
// outside of the task: no processes, memory or descriptors were left, or the
// attempt was stopped before the command started. The task goes back to its
// queue and the attempt does not count.
type NotStartedError struct{ Err error }

func (e *NotStartedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotStartedError) Unwrap() error { return e.Err }

// startError returns the error of an attempt whose command could not be started
// because of the task itself.
func startError(code int, format string, args ...any) error {
	return &taskspec.AttemptError{Reason: jobs.ReasonStart, ExitCode: &code, Msg: fmt.Sprintf(format, args...)}
}

// Run runs the command and returns its result.
func (c *Command) Run() (json.RawMessage, error) {
	argv, err := taskspec.Argv(c.Task.Args)
	if err != nil {
		return nil, err
	}
	if err := taskspec.CheckCommand(&c.Task); err != nil {
		return nil, err
	}

	// make the directory for results again, if someone has removed it
	_ = c.Store.MakeDir()
	resources, err := c.resources()
	if err != nil {
		return nil, err
	}

	removeFiles, err := c.makeFiles()
	defer removeFiles()

	if err != nil {
		return nil, &NotStartedError{err}
	}

	environ, err := c.environ(c.Stop)
	if err != nil {
		return nil, startError(cannotExecute, "env_file: %v", err)
	}

	path, err := c.path(argv[0])
	if err != nil {
		return nil, err
	}
	// Check the filesystems before the start. A filesystem that does not answer
	// would block the start, and nobody can kill the command during the start.
	if err := answers(c.Stop, path); err != nil {
		return nil, startError(cannotExecute, "%s: %v", path, err)
	}

	dir := c.directory()
	if err := checkDir(c.Stop, dir); err != nil && !(c.account != nil && errors.Is(err, fs.ErrPermission)) {
		return nil, startError(cannotExecute, "cannot enter directory %s: %v", dir, humanize.Reason(err))
	}

	remove, err := c.writeUpstream()
	defer remove()

	if err != nil {
		return nil, fmt.Errorf("$RUNNER_UPSTREAM: %w", err)
	}

	child, err := c.start(path, dir, argv, environ, resources)
	if err != nil {
		return nil, err
	}

	exit, err := c.wait(child)
	c.ChildrenKilled, c.ChildrenLeft, c.Usage = exit.LeftOver, exit.Left, command.Usage(exit.Usage)
	c.logRest(exit)
	if err != nil {
		return nil, c.notStarted(err, path)
	}

	return c.outcome(exit)
}

// key identifies the attempt.
func (c *Command) key() supervisor.Key {
	return supervisor.Key{ID: c.Task.ID, Generation: c.Task.GenerationID}
}

// start starts the command with pipes for its stdin, stdout and stderr. The
// command inherits one end of each pipe. After the start, this process closes
// its own copies of these ends.
func (c *Command) start(path, dir string, argv, environ []string, resources supervisor.Resources) (*supervisor.Child, error) {
	stdout, err := c.Output.pipe("stdout")
	if err != nil {
		return nil, &NotStartedError{err}
	}
	defer stdout.Close()

	stderr, err := c.Output.pipe("stderr")
	if err != nil {
		return nil, &NotStartedError{err}
	}
	defer stderr.Close()

	stdin, err := c.stdin()
	if err != nil {
		return nil, err
	}
	if stdin != nil && stdin != c.Stdin {
		defer stdin.Close()
	}
	if err := c.account.own(stdout, stderr); err != nil {
		return nil, &NotStartedError{err}
	}
	if cause := context.Cause(c.Stop); cause != nil {
		return nil, &NotStartedError{cause}
	}

	child, err := c.Guardians.Start(supervisor.Command{Path: path, Argv: argv, Env: environ, Dir: dir, Stdin: stdin,
		Stdout: stdout, Stderr: stderr, LeaveChildren: c.Task.LeaveChildren, Resources: resources}, c.key(), c.Deadline())
	if err != nil {
		return nil, c.notStarted(err, path)
	}

	return child, nil
}

// notStarted returns the error of an attempt whose command could not be
// started, or was lost.
func (c *Command) notStarted(err error, path string) error {
	var resource *supervisor.ResourceError
	switch {
	case IsLoss(err):
		return err
	case supervisor.OutOfResources(err), errors.Is(err, supervisor.ErrRefused):
		return &NotStartedError{err}
	case errors.As(err, &resource):
		return c.resourceError(resource)
	}

	if why := scriptError(c.Stop, path, err); why != "" {
		return startError(cannotExecute, "cannot execute %s: %s", path, why)
	}

	switch {
	case errors.Is(err, fs.ErrNotExist):
		return startError(notFoundCode, "%s: not found", path)
	case errors.Is(err, fs.ErrPermission) && c.account != nil:
		return startError(cannotExecute, "user %s cannot execute %s or enter the directory %s", c.account.name, path, c.Task.Cwd)
	default:
		return startError(cannotExecute, "cannot execute %s: %v", path, humanize.Reason(err))
	}
}

// path returns the path of the file to execute. It is the path stored in the
// task, or the result of a search for the name in the worker's PATH.
func (c *Command) path(name string) (string, error) {
	if c.Task.Path != "" {
		return c.Task.Path, nil
	}
	if strings.ContainsRune(name, os.PathSeparator) {
		if !filepath.IsAbs(name) && c.Task.Cwd != "" {
			name = filepath.Join(c.Task.Cwd, name)
		}
		return name, nil
	}

	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return filepath.Abs(path)
	case errors.Is(err, fs.ErrPermission):
		return "", startError(cannotExecute, "%s: found in PATH but not executable", name)
	default:
		return "", startError(notFoundCode, "%s: not found in the worker's PATH", name)
	}
}

// wait waits until the command ends. It stops the command when c.Stop ends.
func (c *Command) wait(child *supervisor.Child) (supervisor.Exit, error) {
	select {
	case <-child.Ended():
	case <-c.Stop.Done():
		c.end(child)
	}

	exit, err := child.Wait()
	c.Output.drain()
	return exit, err
}

// end sends TERM to the command, and KILL if it still runs after
// Task.KillAfter. It sends KILL at once when c.Kill is closed.
func (c *Command) end(child *supervisor.Child) {
	select {
	case <-c.Kill:
	default:
		if c.Task.KillAfter > 0 {
			_ = child.Terminate() // an error means that the command has already ended
			timer := time.NewTimer(c.Task.KillAfter)
			defer timer.Stop()

			select {
			case <-child.Ended():
				return
			case <-timer.C:
			case <-c.Kill:
			}
		}
	}
	_ = child.Kill()
}

// outcome returns the result of the command, or the error that follows from its
// exit status. Exit status 0 completes the task, even if the command exits
// because its worker shuts down. After a timeout or a cancellation, exit status
// 0 does not complete the task.
func (c *Command) outcome(exit supervisor.Exit) (json.RawMessage, error) {
	result, err := c.result()
	ok := exit.Signal == 0 && exit.Code == 0
	cause := context.Cause(c.Stop)
	stopped := errors.Is(cause, jobs.ErrTimeout) || errors.Is(cause, jobs.ErrCancelled)
	switch {
	case ok && err == nil && !stopped:
		return result, nil
	case ok && err != nil:
		return nil, &taskspec.AttemptError{Reason: jobs.ReasonError, ExitCode: &exit.Code, Msg: err.Error()}
	case err != nil:
		result = nil
	}

	if exit.OutOfMemory && !stopped {
		return result, &taskspec.AttemptError{Reason: jobs.ReasonMemory, Signal: exit.Signal,
			Msg: "killed because it used more memory than " + humanize.ExactSize(c.Task.Memory)}
	}

	return result, exitError(exit)
}

// exitError returns the error of an exit status other than 0, or of a signal.
func exitError(exit supervisor.Exit) error {
	if exit.Signal != 0 {
		return &taskspec.AttemptError{Reason: jobs.ReasonSignal, Signal: exit.Signal, Msg: "killed by signal " + strconv.Itoa(exit.Signal)}
	}
	return &taskspec.AttemptError{Reason: jobs.ReasonExit, ExitCode: &exit.Code, Msg: "exit status " + strconv.Itoa(exit.Code)}
}

// now returns the current time. This package reads the clock nowhere else.
func now() time.Time { return time.Now() }
