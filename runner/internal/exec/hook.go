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

// Options.OnFailure is a command that a worker runs once for each task that the worker made failed. It replaces the mail of cron. It is
// best effort: a crash after the failure and before the command loses it. A guardian starts the command, as it starts commands of
// tasks, so the command dies with its worker, together with all processes that it has started.

const (
	hookTimeout   = time.Minute      // for one command
	hookGrace     = 10 * time.Second // for the commands that run when the worker stops
	maxHooks      = 4                // at once
	maxQueued     = 100              // commands that run or wait; more failures are only logged
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
	kill    context.Context // its end kills the commands
	end     context.CancelFunc
}

// NewHooks returns Hooks that run argv.
func NewHooks(worker *Worker, argv []string, log *slog.Logger) *Hooks {
	h := &Hooks{worker: worker, argv: argv, log: log, slots: make(chan struct{}, maxHooks)}
	h.kill, h.end = context.WithCancel(context.Background())
	return h
}

// Failed runs the command for a task that became failed by a change. task is the task as the worker claimed it. Failed does not wait.
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

// End waits for the running commands for at most hookGrace and then kills them. When aborted ends, it kills them at once and returns
// jobs.ErrShutdown.
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
			_, _ = input.Write(c.Data) // fails if the command ends without reading all of it
		}
	}()
	out, print, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	defer print.Close()
	// The key names no task. So doctor does not take the command for a process of the failed task, and no heartbeat renews it. The
	// deadline holds if this worker is stopped.
	child, err := h.worker.Guardians.start(context.Background(), supervisor.Command{Path: path, Argv: h.argv, Env: h.environ(task),
		Stdin: stdin, Stdout: print, Stderr: print}, supervisor.Key{Generation: h.started.Add(1)}, now().Add(hookTimeout+hookGrace))
	if err != nil {
		return nil, err
	}
	stdin.Close() // the command has its own copies
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
	_ = out.SetReadDeadline(now().Add(lingerAfter)) // a process that escaped may hold the pipe forever
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

// environ returns the environment of the task's command, and variables that tell how the task ended.
func (h *Hooks) environ(task jobs.Task) []string {
	c := Command{Worker: h.worker, Task: task}
	environ, err := c.environ(h.kill)
	if err != nil { // the environment file cannot be read, which may be why the task has failed
		c.Task.EnvFile = ""
		environ, _ = c.environ(h.kill)
	}
	environ = slices.DeleteFunc(environ, func(variable string) bool { return strings.HasPrefix(variable, "RUNNER_RESULT=") })
	text := strings.ReplaceAll(task.Error, "\x00", "")
	return append(environ, "RUNNER_TASK_STATE="+string(task.State), "RUNNER_TASK_REASON="+string(task.Reason), "RUNNER_TASK_ERROR="+text)
}
