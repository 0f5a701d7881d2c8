package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// The measurements in this file use several processes. To start a worker process, this program starts itself again with the parameters in
// the environment.

const childVariable = "BENCH_CHILD"

// child holds the parameters of a worker process.
type child struct {
	Path        string
	Concurrency int
	UntilEmpty  bool
	Held        bool // if true, the worker begins only after the parent has called the method "let"
}

// childReport is the report that a worker process prints when it ends.
type childReport struct {
	Ran     int
	Longest time.Duration // longest time between two starts of tasks
}

// beChild runs tasks until it receives an interrupt, its parent ends, or no task is left.
func beChild(ctx context.Context, text string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	let := make(chan struct{})
	go func() {
		if c.Held {
			_, _ = os.Stdin.Read(make([]byte, 1))
		}
		close(let)
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	r, err := runner.Open(ctx, c.Path, runner.Options{Sync: runner.Normal, Concurrency: c.Concurrency})
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
	<-let
	work := r.Work
	if c.UntilEmpty {
		work = r.WorkUntilEmpty
	}
	if err := work(ctx); err != nil {
		return err
	}
	close(starts)
	<-counted
	return json.NewEncoder(os.Stdout).Encode(report)
}

// probe is a job whose argument is a time. Its result is the duration from that time to the start of the task.
var probe = jobs.DefineResult[int64, time.Duration]("probe")

// worker is a running worker process.
type worker struct {
	cmd *exec.Cmd
	in  io.Writer // standard input of the worker; it stays open as long as this process lives
	out *bufio.Scanner
}

// The method "let" tells a worker to begin. Only a worker that was started with child.Held waits for this call.
func (w *worker) let() error {
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

// end waits for the end of the worker and returns its report. If the argument "interrupt" is set, it interrupts the worker first.
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

// filled creates a database and adds n pending tasks.
func filled(ctx context.Context, e *env, n int) (*runner.Runner, error) {
	r, err := runner.Open(ctx, e.path("runner.db"), runner.Options{Sync: runner.Normal})
	if err != nil {
		return nil, err
	}
	_, err = r.EnqueueAll(ctx, specs(payloads(0, n)))
	return r, err
}

// manyProcesses measures how fast several processes drain one file, in tasks per second. Each process runs ten tasks at a time. If the
// argument "starved" is set, manyProcesses instead measures the longest time that a process waits for its next task, in milliseconds. The
// wait for the first task does not count.
func manyProcesses(n, processes int, starved bool) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		r, err := filled(ctx, e, n)
		if err != nil {
			return 0, err
		}
		defer r.Close()
		var workers []*worker
		for range processes {
			w, err := startWorker(ctx, child{Path: r.Path(), Concurrency: 10, UntilEmpty: true, Held: true})
			if err != nil {
				return 0, err
			}
			workers = append(workers, w)
		}
		began := time.Now() // start the clock when all workers are ready: in practice a worker starts once and runs for a long time
		for _, w := range workers {
			if err := w.let(); err != nil {
				return 0, err
			}
		}
		ran, longest := 0, time.Duration(0)
		for _, w := range workers {
			report, err := w.end(false)
			if err != nil {
				return 0, err
			}
			ran += report.Ran
			longest = max(longest, report.Longest)
		}
		took := time.Since(began)
		if ran != n {
			return 0, fmt.Errorf("%d tasks were run %d times", n, ran)
		}
		_, completed, err := ourCounts(ctx, r)
		if err == nil && completed != n {
			err = fmt.Errorf("%d of %d tasks are completed in the file", completed, n)
		}
		if starved {
			return ms(longest), err
		}
		return perSecond(n, took), err
	}
}

// kept measures how much a worker slows down while this process enqueues a task every 5 ms. The result is the speed of the worker during
// these enqueues, in percent of its speed without them. Periods with and without enqueues alternate.
func kept(concurrency int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		r, err := filled(ctx, e, e.size(200_000))
		if err != nil {
			return 0, err
		}
		defer r.Close()
		w, err := startWorker(ctx, child{Path: r.Path(), Concurrency: concurrency})
		if err != nil {
			return 0, err
		}
		stretch := time.Duration(e.size(600)) * time.Millisecond
		var rates [2]float64
		_, done, err := ourCounts(ctx, r)
		if err != nil {
			return 0, err
		}
		for i := range 6 {
			began := time.Now()
			for time.Since(began) < stretch {
				if i%2 == 1 {
					if _, err := r.Enqueue(ctx, noop.With(newPayload(i), jobs.Queue("other"), jobs.In(time.Hour))); err != nil {
						return 0, err
					}
				}
				time.Sleep(5 * time.Millisecond)
			}
			took := time.Since(began)
			waiting, now, err := ourCounts(ctx, r)
			if err != nil {
				return 0, err
			}
			if waiting == 0 && !e.short {
				return 0, fmt.Errorf("the drain was over before the enqueueing")
			}
			rates[i%2] += perSecond(now-done, took)
			if _, done, err = ourCounts(ctx, r); err != nil { // count again, because tasks have completed during the first count
				return 0, err
			}
		}
		if _, err := w.end(true); err != nil {
			return 0, err
		}
		if rates[0] == 0 {
			return 0, fmt.Errorf("nothing was drained")
		}
		return 100 * rates[1] / rates[0], nil
	}
}

// The function "beside" measures how long this process needs to enqueue a task while another process drains at full speed. The result is
// percentile p, in milliseconds.
func beside(concurrency int, p float64) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		r, err := filled(ctx, e, e.size(100_000))
		if err != nil {
			return 0, err
		}
		defer r.Close()
		w, err := startWorker(ctx, child{Path: r.Path(), Concurrency: concurrency})
		if err != nil {
			return 0, err
		}
		var took []time.Duration
		for i := range e.size(200) {
			began := time.Now()
			if _, err := r.Enqueue(ctx, noop.With(newPayload(i), jobs.Queue("other"), jobs.In(time.Hour))); err != nil {
				return 0, err
			}
			took = append(took, time.Since(began))
			time.Sleep(5 * time.Millisecond)
		}
		waiting, _, err := ourCounts(ctx, r)
		if err != nil {
			return 0, err
		}
		if waiting == 0 && !e.short {
			return 0, fmt.Errorf("the drain was over before the enqueueing")
		}
		slices.Sort(took)
		if _, err := w.end(true); err != nil {
			return 0, err
		}
		return ms(percentile(took, p)), nil
	}
}

// latencyAcross measures the time from an enqueue in this process to the start of the task in another process. The result is percentile p,
// in milliseconds.
func latencyAcross(n int, p float64) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		r, err := filled(ctx, e, 0)
		if err != nil {
			return 0, err
		}
		defer r.Close()
		w, err := startWorker(ctx, child{Path: r.Path(), Concurrency: 10})
		if err != nil {
			return 0, err
		}
		var took []time.Duration
		for i := range n {
			time.Sleep(time.Duration(5+i%7) * time.Millisecond)
			began := time.Now()
			task, err := r.Enqueue(ctx, probe.With(began.UnixNano()))
			if err != nil {
				return 0, err
			}
			late, err := probe.Result(r.Await(ctx, task.ID))
			if err != nil {
				return 0, err
			}
			took = append(took, late)
		}
		if _, err := w.end(true); err != nil {
			return 0, err
		}
		slices.Sort(took)
		return ms(percentile(took, p)), nil
	}
}

// start measures how long a new process needs to enqueue one task while an idle worker uses the same file. The result is the median of n
// processes, in milliseconds.
func start(args func(e *env) []string, n int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		r, err := filled(ctx, e, 0)
		if err != nil {
			return 0, err
		}
		defer r.Close()
		w, err := startWorker(ctx, child{Path: r.Path(), Concurrency: 1})
		if err != nil {
			return 0, err
		}
		words := args(e)
		var took []time.Duration
		for range e.size(n) {
			p, err := e.process(ctx, "", words[0], words[1:]...)
			if err != nil {
				return 0, err
			}
			took = append(took, p.took)
		}
		if _, err := w.end(true); err != nil {
			return 0, err
		}
		slices.Sort(took)
		there, err := r.Count(ctx, jobs.Filter{})
		if err == nil && there != len(took) {
			err = fmt.Errorf("%d of %d tasks are there", there, len(took))
		}
		return ms(percentile(took, 0.5)), err
	}
}

// batchLines measures how fast the command line enqueues a file of n lines, in lines per second. If the argument "memory" is set, it
// measures the peak memory of the process instead, in megabytes.
func batchLines(n int, memory bool) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `{"args":["echo","line %d of a batch"],"priority":%d,"label":"line"}`+"\n", i, i%10)
		}
		if err := os.WriteFile(e.path("lines"), []byte(text.String()), 0o600); err != nil {
			return 0, err
		}
		if memory {
			most, err := e.memory(ctx, e.binary, "enqueue", "--batch", e.path("lines"))
			if err != nil {
				return 0, err
			}
			return float64(most) / 1e6, e.holds(ctx, n, 0)
		}
		p, err := e.runner(ctx, "", "enqueue", "--batch", e.path("lines"))
		if err != nil {
			return 0, err
		}
		return perSecond(n, p.took), e.holds(ctx, n, 0)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
