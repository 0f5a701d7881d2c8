package runner

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
)

// Options.OnFailure is a command that this worker runs once for each task that became failed by its doing: cron's mail, without mail.
// It is best effort: a crash in between loses it. It is started as commands are: it dies with its worker, and with it whatever it has
// started.

const (
	hookTime  = time.Minute      // what it may take
	hookEnd   = 10 * time.Second // what it may still take when the worker stops
	hooksMost = 4                // at once
	hooksWait = 100              // more than that waiting: told in the log only
	hookLines = 50               // of the task's output, on its stdin
	hookSaid  = 4 << 10          // bytes of what it prints that are logged
)

// hooks runs the command for one engine.
type hooks struct {
	e       *engine
	argv    []string // nil: there is none
	slots   chan struct{}
	waiting atomic.Int32
	started atomic.Int64 // how many there were
	running sync.WaitGroup
	stop    chan struct{} // closed: kill them
}

func newHooks(e *engine, argv []string) *hooks {
	return &hooks{e: e, argv: argv, slots: make(chan struct{}, hooksMost), stop: make(chan struct{})}
}

// failed is called with each task that became failed, as it was claimed.
func (h *hooks) failed(task jobs.Task, c jobs.Change) {
	if len(h.argv) == 0 {
		return
	}
	if h.waiting.Add(1) > hooksWait {
		h.waiting.Add(-1)
		h.e.log.Warn("on-failure left out: too many at once", "task", task.ID)
		return
	}
	task.State, task.Reason, task.Error = c.State, c.Reason, c.Error
	h.running.Go(func() {
		defer h.waiting.Add(-1)
		select {
		case h.slots <- struct{}{}:
		case <-h.stop:
			return
		}
		defer func() { <-h.slots }()
		said, err := h.run(task)
		if err != nil {
			h.e.log.Warn("on-failure did not succeed", "task", task.ID, "err", err, "output", strings.TrimSpace(string(said)))
		}
	})
}

// end waits a moment for those under way, then kills them; at once when aborted ends: then it returns jobs.ErrShutdown.
func (h *hooks) end(aborted <-chan struct{}) (err error) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		h.running.Wait()
	}()
	timer := time.NewTimer(hookEnd)
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-timer.C:
	case <-aborted:
		err = jobs.ErrShutdown
	}
	close(h.stop)
	<-over
	return err
}

// run runs the command for one task and returns what it printed.
func (h *hooks) run(task jobs.Task) (said []byte, err error) {
	path, err := exec.LookPath(h.argv[0])
	if err != nil {
		return nil, err
	}
	chunks, err := h.e.r.store.LastOutput(context.Background(), db.ClaimID{ID: task.ID, GenerationID: task.GenerationID}, hookLines+4)
	if err != nil {
		return nil, err
	}
	stdin, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	go func() {
		defer feed.Close()
		_, _ = feed.Write(lastLines(chunks, hookLines)) // it may end without having read it
	}()
	out, print, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	defer print.Close()
	// Its key names no task, so that doctor does not take it for a process of the task that has failed, and no heartbeat renews it. The
	// deadline is for a worker that is stopped.
	p, err := h.e.guard.start(context.Background(), supervisor.Command{Path: path, Argv: h.argv, Env: h.environ(task), Stdin: stdin, Stdout: print, Stderr: print},
		db.ClaimID{GenerationID: h.started.Add(1)}, now().Add(hookTime+hookEnd))
	if err != nil {
		return nil, err
	}
	stdin.Close()
	print.Close() // it has its own
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_ = supervisor.ReadPipe(out, make([]byte, hookSaid), func(data []byte) {
			said = append(said, data[:min(len(data), hookSaid-len(said))]...)
		})
	}()
	over := make(chan struct{})
	go func() {
		timer := time.NewTimer(hookTime)
		defer timer.Stop()
		select {
		case <-timer.C:
			_ = p.Kill()
		case <-h.stop:
			_ = p.Kill()
		case <-over:
		}
	}()
	exit, err := p.Wait()
	close(over)
	h.e.guard.ended(task.ID, p, exit.Denied)
	_ = out.SetReadDeadline(now().Add(lingerAfter)) // a process that escaped may hold the pipe for ever
	<-heard
	if err == nil && (exit.Code != 0 || exit.Signal != 0) {
		err = exitError(exit)
	}
	return said, err
}

// environ is the environment of the task's command, and how the task ended.
func (h *hooks) environ(task jobs.Task) []string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-h.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	c := command{attempt: &attempt{e: h.e}, task: task}
	environ, err := c.environ(ctx)
	if err != nil { // its env_file cannot be read: it may have failed because of that
		c.task.EnvFile = ""
		environ, _ = c.environ(ctx)
	}
	kept := environ[:0]
	for _, variable := range environ {
		if !strings.HasPrefix(variable, "RUNNER_RESULT=") {
			kept = append(kept, variable)
		}
	}
	text := strings.ReplaceAll(task.Error, "\x00", "")
	return append(kept, "RUNNER_TASK_STATE="+string(task.State), "RUNNER_TASK_REASON="+string(task.Reason), "RUNNER_TASK_ERROR="+text)
}

// lastLines joins pieces of output and keeps the last n lines.
func lastLines(chunks []jobs.Chunk, n int) []byte {
	var text []byte
	for _, c := range chunks {
		text = append(text, c.Data...)
	}
	end := len(text)
	if end > 0 && text[end-1] == '\n' {
		end-- // it begins no line
	}
	for ; n > 0; n-- {
		if end = bytes.LastIndexByte(text[:end], '\n'); end < 0 {
			return text
		}
	}
	return text[end+1:]
}
