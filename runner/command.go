package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// CommandOptions say how Commands runs them.
type CommandOptions struct {
	// Tee is called with what commands print, as it comes, from several goroutines, and with no data when a stream has ended.
	// It must not keep the data. Defaults to none.
	Tee func(task jobs.Task, stream string, data []byte)
}

// Commands returns the handler of the job "command". A program that does not register it runs functions only.
func Commands(options CommandOptions) jobs.Handler {
	return jobs.Handler{Job: jobs.CommandJob, MaxAttempts: jobs.CommandAttempts,
		Run: func(ctx context.Context, task jobs.Task) (json.RawMessage, error) {
			a := attemptFrom(ctx)
			if a == nil {
				return nil, errors.New("commands are run by Work only")
			}
			c := command{attempt: a, task: task, output: a.printed()}
			c.output.tee = options.Tee
			return c.run()
		}}
}

// command is one attempt of a task that runs an argv.
type command struct {
	*attempt
	task   jobs.Task
	output *capture
}

// The exit codes of shells for what could not be started, kept as the exit code of an attempt with reason start.
const (
	cannotExecute = 126
	notFoundCode  = 127
)

func startError(code int, format string, args ...any) error {
	return &jobs.AttemptError{Reason: jobs.ReasonStart, ExitCode: &code, Msg: fmt.Sprintf(format, args...)}
}

func (c *command) run() (json.RawMessage, error) {
	argv, err := jobs.Argv(c.task.Args)
	if err != nil {
		return nil, err
	}
	if err := jobs.CheckCommand(&c.task); err != nil {
		return nil, err
	}
	_ = c.e.r.store.MakeDir() // somebody may have removed it, and the result goes there
	environ, err := c.environ(c.ctx)
	if err != nil {
		return nil, startError(cannotExecute, "env_file: %v", err)
	}
	path, err := c.path(argv[0])
	if err != nil {
		return nil, err
	}
	files := []string{path, c.task.Cwd}
	if c.task.Cwd == "" {
		files = files[:1]
	}
	if silent, err := answer(c.ctx, files...); err != nil { // or the command could not be killed while it is started
		return nil, startError(cannotExecute, "%s: %v", silent, err)
	}
	remove, err := c.writeUpstream()
	defer remove()
	if err != nil {
		return nil, fmt.Errorf("$RUNNER_UPSTREAM: %w", err)
	}
	stdout, err := c.output.pipe("stdout")
	if err != nil {
		return nil, &troubleError{err}
	}
	defer stdout.Close()
	stderr, err := c.output.pipe("stderr")
	if err != nil {
		return nil, &troubleError{err}
	}
	defer stderr.Close()
	stdin, err := c.stdin()
	if err != nil {
		return nil, err
	}
	if stdin != nil {
		defer stdin.Close()
	}
	if cause := context.Cause(c.ctx); cause != nil { // stopped before it began
		return nil, &troubleError{cause}
	}
	c.e.mu.Lock()
	deadline := c.deadline
	c.e.mu.Unlock()
	p, err := c.e.guard.start(c.ctx, supervisor.Command{Path: path, Argv: argv, Env: environ, Dir: c.task.Cwd, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		KillAfter: c.task.KillAfter}, c.claim, deadline)
	if err != nil {
		return nil, notStarted(err, path, argv, environ)
	}
	stdout.Close() // the command has its own
	stderr.Close()
	if stdin != nil {
		stdin.Close()
	}
	exit, err := c.wait(p)
	c.e.guard.ended(c.task.ID, p, exit.Denied)
	if err != nil {
		return nil, err
	}
	return c.verdict(exit)
}

// notStarted is the error of an attempt whose command could not be started.
func notStarted(err error, path string, argv, environ []string) error {
	var dir *supervisor.DirError
	switch {
	case isLoss(err):
		return err
	case supervisor.OutOfResources(err), errors.Is(err, supervisor.ErrRefused):
		return &troubleError{err}
	case errors.As(err, &dir):
		return startError(cannotExecute, "cannot enter directory %s: %v", dir.Dir, reasonOf(dir.Err))
	case errors.Is(err, fs.ErrNotExist):
		return startError(notFoundCode, "%s: not found", path)
	case errors.Is(err, syscall.E2BIG):
		return startError(cannotExecute, "cannot execute %s: %s", path, tooLong(argv, environ))
	default:
		return startError(cannotExecute, "cannot execute %s: %v", path, reasonOf(err))
	}
}

// tooLong says which part of a command is longer than the system takes.
func tooLong(argv, environ []string) string {
	const longest = 128<<10 - 1 // bytes of one argument or variable, on Linux
	total := 0
	for i, word := range argv {
		if total += len(word) + 1; len(word) > longest {
			return fmt.Sprintf("args: argument %d has %d bytes; at most %d", i+1, len(word), longest)
		}
	}
	for _, variable := range environ {
		if total += len(variable) + 1; len(variable) > longest {
			name, _, _ := strings.Cut(variable, "=")
			return fmt.Sprintf("env or env_file: the variable %s has %d bytes; at most %d", name, len(variable), longest)
		}
	}
	return fmt.Sprintf("args and environment have %d bytes, more than the system takes", total)
}

// reasonOf is the system's own word for an error, without the names around it.
func reasonOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// path is what to execute: the stored path, or what the name leads to in the worker's PATH.
func (c *command) path(name string) (string, error) {
	if c.task.Path != "" {
		return c.task.Path, nil
	}
	if strings.ContainsRune(name, os.PathSeparator) {
		if !filepath.IsAbs(name) && c.task.Cwd != "" {
			name = filepath.Join(c.task.Cwd, name)
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

// wait lets the command run until it ends or its attempt is stopped: then TERM, and KILL after kill_after.
func (c *command) wait(p *supervisor.Child) (supervisor.Exit, error) {
	select {
	case <-p.Ended():
	case <-c.ctx.Done():
		c.end(p)
	}
	exit, err := p.Wait()
	c.output.drain()
	return exit, err
}

func (c *command) end(p *supervisor.Child) {
	select {
	case <-c.kill:
	default:
		if c.task.KillAfter > 0 {
			_ = p.Terminate(c.task.KillAfter) // it may have ended; then there is nothing to do
			timer := time.NewTimer(c.task.KillAfter)
			defer timer.Stop()
			select {
			case <-p.Ended():
				return
			case <-timer.C:
			case <-c.kill:
			}
		}
	}
	_ = p.Kill()
}

// verdict reads how the command ended, and the result that it left. Exit status 0 is a completion, also as the answer to the TERM of a
// worker that stops; after a timeout or a cancel it is not.
func (c *command) verdict(exit supervisor.Exit) (json.RawMessage, error) {
	result, err := c.result()
	ok := exit.Signal == 0 && exit.Code == 0
	cause := context.Cause(c.ctx)
	stopped := errors.Is(cause, jobs.ErrTimeout) || errors.Is(cause, jobs.ErrCancelled)
	switch {
	case ok && err == nil && !stopped:
		return result, nil
	case ok && err != nil:
		return nil, &jobs.AttemptError{Reason: jobs.ReasonError, ExitCode: &exit.Code, Msg: err.Error()}
	case err != nil:
		result = nil
	}
	return result, exitError(exit)
}

// exitError is the error of a command that ended otherwise than with exit status 0.
func exitError(exit supervisor.Exit) error {
	if exit.Signal != 0 {
		return &jobs.AttemptError{Reason: jobs.ReasonSignal, Signal: exit.Signal, Msg: "killed by signal " + strconv.Itoa(exit.Signal)}
	}
	return &jobs.AttemptError{Reason: jobs.ReasonExit, ExitCode: &exit.Code, Msg: "exit status " + strconv.Itoa(exit.Code)}
}

// resultPath is where the command may leave a result: a name that only this attempt has, in a directory of this user alone.
func (c *command) resultPath() string {
	return filepath.Join(c.e.r.store.Dir(), fmt.Sprintf("result-%d-%d.json", c.task.ID, c.task.GenerationID))
}

// result reads and removes what the command left at $RUNNER_RESULT: nothing, or JSON. Links and fifos are not followed nor waited on.
func (c *command) result() (json.RawMessage, error) {
	path := c.resultPath()
	text, err := readRegular(context.Background(), path, openNoFollow, jobs.MaxResult)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	_ = os.Remove(path)
	if err != nil {
		return nil, fmt.Errorf("result: cannot read $RUNNER_RESULT: %w", reasonOf(err))
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, nil
	}
	return text, jobs.ValidResult(text)
}

// stdin is the reading end of a pipe that is fed with the task's input; nil: there is none.
func (c *command) stdin() (*os.File, error) {
	if c.task.InputBytes == 0 {
		return nil, nil
	}
	input, err := c.e.r.store.Input(c.ctx, c.task.ID)
	if err != nil {
		return nil, fmt.Errorf("read the input: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, &troubleError{err}
	}
	go func() {
		defer w.Close()
		_, _ = w.Write(input) // a command may end without having read it
	}()
	return r, nil
}
