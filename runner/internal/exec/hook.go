package exec

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/lifecycle"
	"example.com/runner/internal/lines"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// Options.OnFailure is a command that a worker runs once for each task that this worker has set to failed. It serves the purpose of cron's
// mail. The command does not run if the worker crashes after the failure and before the start of the command. A guardian starts the command
// in the same way as the commands of tasks. So the command and all processes that it has started die with the worker.

const (
	hookTimeout   = time.Minute      // longest time of one command
	hookGrace     = 10 * time.Second // time that commands still have when the worker stops
	maxHooks      = 4                // commands at once
	maxQueued     = 100              // greatest number of commands that run or wait; more failures are only logged
	hookLines     = 50               // lines of the task's output on the stdin of the command
	maxHookOutput = 4 << 10          // bytes of the command's output that are logged
)

// Hooks runs the command of Options.OnFailure for one worker.
type Hooks struct {
	worker  *Worker
	argv    []string // empty if there is no command
	log     *slog.Logger
	slots   chan struct{}
	queued  atomic.Int32
	started atomic.Int64 // commands so far
	running sync.WaitGroup
	kill    context.Context // when it ends, the commands are killed
	end     context.CancelFunc
}

// NewHooks returns Hooks that run argv.
func NewHooks(worker *Worker, argv []string, log *slog.Logger) *Hooks {
	h := &Hooks{worker: worker, argv: argv, log: log, slots: make(chan struct{}, maxHooks)}
	h.kill, h.end = context.WithCancel(context.Background())
	return h
}

// Failed runs the command for a task that has failed with the given change. The parameter task is the task as the worker claimed it. Failed
// does not wait for the command.
func (h *Hooks) Failed(task jobs.Task, c lifecycle.Change) {
	if len(h.argv) == 0 {
		return
	}
	if h.queued.Add(1) > maxQueued {
		h.queued.Add(-1)
		h.log.Warn("on-failure command skipped: too many at once", "task", task.ID)
		return
	}
	task.State, task.Reason, task.Error = c.State, c.Reason, c.Error
	h.running.Go(func() {
		defer h.queued.Add(-1)
		select {
		case h.slots <- struct{}{}:
		case <-h.kill.Done():
			return
		}
		defer func() { <-h.slots }()
		output, err := h.run(task)
		if err != nil {
			h.log.Warn("on-failure command failed", "task", task.ID, "err", err, "output", strings.TrimSpace(string(output)))
		}
	})
}

// End waits at most hookGrace for the running commands, and then kills them. When aborted is closed, End kills the commands at once and
// returns jobs.ErrShutdown.
func (h *Hooks) End(aborted <-chan struct{}) (err error) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		h.running.Wait()
	}()
	timer := time.NewTimer(hookGrace)
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-timer.C:
	case <-aborted:
		err = jobs.ErrShutdown
	}
	h.end()
	<-over
	return err
}

// run runs the command for one task and returns the start of its output.
func (h *Hooks) run(task jobs.Task) (output []byte, err error) {
	path, err := exec.LookPath(h.argv[0])
	if err != nil {
		return nil, err
	}
	chunks, err := h.worker.Store.LastOutput(context.Background(), db.ClaimID{ID: task.ID, GenerationID: task.GenerationID}, hookLines+4)
	if err != nil {
		return nil, err
	}
	stdin, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	go func() {
		defer input.Close()
		last, _ := lines.Last(chunks, hookLines)
		for _, c := range last {
			_, _ = input.Write(c.Data) // fails if the command ends without reading the whole input
		}
	}()
	out, print, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	defer print.Close()
	// The key contains no task id. So `runner doctor` does not report the command as a process of the failed task, and heartbeats do not
	// extend its deadline. If this worker is suspended, the guardian kills the command at the deadline.
	child, err := h.worker.Guardians.start(context.Background(), supervisor.Command{Path: path, Argv: h.argv, Env: h.environ(task),
		Stdin: stdin, Stdout: print, Stderr: print}, supervisor.Key{Generation: h.started.Add(1)}, now().Add(hookTimeout+hookGrace))
	if err != nil {
		return nil, err
	}
	stdin.Close() // the command has its own descriptors
	print.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_ = supervisor.ReadPipe(out, make([]byte, maxHookOutput), func(data []byte) {
			output = append(output, data[:min(len(data), maxHookOutput-len(output))]...)
		})
	}()
	exit, err := h.wait(child)
	h.worker.Guardians.release(task.ID, child, exit.Denied)
	_ = out.SetReadDeadline(now().Add(lingerAfter)) // a process that has outlived the command may hold the pipe forever
	<-read
	if err == nil && (exit.Code != 0 || exit.Signal != 0) {
		err = exitError(exit)
	}
	return output, err
}

// wait waits for the end of a command. It kills the command after hookTimeout, or when h.kill ends.
func (h *Hooks) wait(child *supervisor.Child) (supervisor.Exit, error) {
	ctx, cancel := context.WithTimeout(h.kill, hookTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = child.Kill() })()
	return child.Wait()
}

// environ returns the environment of the task's command, with variables for the state, reason and error of the task.
func (h *Hooks) environ(task jobs.Task) []string {
	c := Command{Worker: h.worker, Task: task}
	environ, err := c.environ(h.kill)
	if err != nil { // the environment file cannot be read; the task may have failed for the same reason
		c.Task.EnvFile = ""
		environ, _ = c.environ(h.kill)
	}
	environ = slices.DeleteFunc(environ, func(variable string) bool { return strings.HasPrefix(variable, "RUNNER_RESULT=") })
	text := strings.ReplaceAll(task.Error, "\x00", "")
	return append(environ, "RUNNER_TASK_STATE="+string(task.State), "RUNNER_TASK_REASON="+string(task.Reason), "RUNNER_TASK_ERROR="+text)
}
