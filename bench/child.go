package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// The measurements in this file use several processes. To start a worker
// process, this program starts itself again with the parameters in the
// environment.

const childVariable = "BENCH_CHILD"

// child holds the parameters of a worker process.
type child struct {
	Path        string
	Concurrency int
	UntilEmpty  bool
	Held        bool // if true, the worker begins only after the parent has called begin
}

// childReport is the report that a worker process prints when it ends.
type childReport struct {
	Ran     int
	Longest time.Duration // longest time between two starts of tasks
}

// beChild runs tasks until it receives an interrupt, its parent ends, or no
// task is left.
func beChild(ctx context.Context, text string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}

	begun := make(chan struct{})
	go func() {
		if c.Held {
			_, _ = os.Stdin.Read(make([]byte, 1))
		}
		close(begun)
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	r, err := runner.Open(ctx, c.Path, runner.Options{Sync: runner.SyncNormal})
	if err != nil {
		return err
	}
	defer r.Close()

	var report childReport
	starts := make(chan time.Time, 1000)
	counted := make(chan struct{})
	go func() {
		last := time.Time{}
		for at := range starts {
			if report.Ran++; !last.IsZero() {
				report.Longest = max(report.Longest, at.Sub(last))
			}
			last = at
		}

		close(counted)
	}()
	r.Register(noop.Handler(func(context.Context, payload) error { starts <- time.Now(); return nil }))
	r.Register(probe.Handler(func(_ context.Context, began int64) (time.Duration, error) {
		return time.Since(time.Unix(0, began)), nil
	}))
	fmt.Println("ready")
	<-begun
	if err := r.Work(ctx, runner.WorkOptions{Concurrency: c.Concurrency, UntilEmpty: c.UntilEmpty}); err != nil {
		return err
	}

	close(starts)
	<-counted
	return json.NewEncoder(os.Stdout).Encode(report)
}

// probe is a job whose argument is a time. Its result is the duration from that
// time to the start of the task.
var probe = jobs.DefineResult[int64, time.Duration]("probe")

// worker is a running worker process.
type worker struct {
	cmd *exec.Cmd
	in  io.Writer // standard input of the worker; it stays open as long as this process lives
	out *bufio.Scanner
}

// begin tells a worker to begin. Only a worker that was started with child.Held
// waits for this call.
func (w *worker) begin() error {
	_, err := w.in.Write([]byte{'\n'})
	return err
}

func startWorker(ctx context.Context, c child) (*worker, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}

	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}

	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}

	w := &worker{cmd, in, bufio.NewScanner(out)}
	if !w.out.Scan() {
		return nil, fmt.Errorf("the worker did not start: %w", cmd.Wait())
	}

	return w, nil
}

// end waits for the end of the worker and returns its report. If interrupt is
// set, it interrupts the worker first.
func (w *worker) end(interrupt bool) (childReport, error) {
	if interrupt {
		if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
			return childReport{}, err
		}
	}

	var report childReport
	if !w.out.Scan() {
		return report, fmt.Errorf("no report: %w", w.cmd.Wait())
	}
	if err := json.Unmarshal(w.out.Bytes(), &report); err != nil {
		return report, err
	}

	return report, w.cmd.Wait()
}
