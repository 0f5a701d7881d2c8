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
	"sync"
	"sync/atomic"
	"time"
)

// Each worker is a process of its own. To start a worker, this program starts
// itself again with the parameters of the worker in the environment.

const childVariable = "BENCH_POSTGRES_CHILD"

type child struct {
	System, Address string
	Concurrency     int
}

// childSays is a line that a child process prints. It says that the child is
// ready, how many tasks it has run, or at the end which tasks it has run.
type childSays struct {
	Ready bool
	Ran   int
	Ended bool
	Which []int
}

const tellEvery = 5 * time.Millisecond

// beChild opens the queue, waits for a line, works until its standard input
// ends, and prints the tasks that it has run.
func beChild(ctx context.Context, text string) error {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}

	i := slices.IndexFunc(systems, func(s system) bool { return s.name == c.System })
	var mu sync.Mutex
	var which []int
	var ran atomic.Int64
	q, err := systems[i].open(ctx, c.Address, c.Concurrency, func(p payload) {
		mu.Lock()
		which = append(which, p.N)
		mu.Unlock()
		ran.Add(1)
	})
	if err != nil {
		return err
	}
	defer q.close()

	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(childSays{Ready: true}); err != nil {
		return err
	}

	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	if err := q.start(ctx); err != nil {
		return err
	}

	over := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, in); close(over) }()
	for told := int64(0); ; {
		select {
		case <-over:
			if err := q.stop(ctx); err != nil {
				return err
			}
			return out.Encode(childSays{Ended: true, Which: which})
		case <-time.After(tellEvery):
			if n := ran.Load(); n != told {
				told = n
				if err := out.Encode(childSays{Ran: int(n)}); err != nil {
					return err
				}
			}
		}
	}
}

// crew is a group of worker processes that run n tasks.
type crew struct {
	system                 string
	addresses              []string // addresses of the databases; process i uses addresses[i%len(addresses)]
	n                      int
	processes, concurrency int
	feed                   func(context.Context) error // adds the tasks while the processes work; nil if the database already has all tasks
}

// line is what one worker process of a crew has printed, or the reason why it
// cannot be read.
type line struct {
	who int
	childSays
	err error
}

// work starts the processes, and returns the time that the tasks took. It
// returns an error unless each task ran exactly once.
func (w crew) work(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()

	lines := make(chan line)
	var inputs []io.WriteCloser
	var commands []*exec.Cmd
	for i := range w.processes {
		in, cmd, err := w.start(ctx, i, lines)
		if err != nil {
			return 0, err
		}
		inputs, commands = append(inputs, in), append(commands, cmd)
	}

	took, times, err := w.collect(ctx, lines, inputs)
	if err != nil {
		return 0, err
	}

	for _, cmd := range commands {
		if err := cmd.Wait(); err != nil {
			return 0, err
		}
	}

	for i, times := range times {
		if times != 1 {
			return 0, fmt.Errorf("task %d ran %d times", i, times)
		}
	}

	return took, nil
}

// start starts process i, and sends the lines that it prints to the channel.
// The process waits for a line on the returned writer.
func (w crew) start(ctx context.Context, i int, lines chan<- line) (io.WriteCloser, *exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}

	text, err := json.Marshal(child{w.system, w.addresses[i%len(w.addresses)], w.concurrency})
	if err != nil {
		return nil, nil, err
	}

	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}

	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}

	go func() {
		for decoder := json.NewDecoder(out); ; {
			l := line{who: i}
			if l.err = decoder.Decode(&l.childSays); l.err != nil {
				l.err = fmt.Errorf("a worker has ended: %w", l.err)
			}

			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}

			if l.err != nil || l.Ended {
				return
			}
		}
	}()
	return in, cmd, nil
}

// collect tells the processes to begin when all of them are ready, and closes
// their inputs when all tasks have run. It returns the time from the start of
// the work to the end of the last process, and how often each task ran.
func (w crew) collect(ctx context.Context, lines <-chan line, inputs []io.WriteCloser) (time.Duration, []int, error) {
	ready, ended, ran := 0, 0, make([]int, w.processes)
	times := make([]int, w.n)
	var began time.Time
	fed := make(chan error, 1)
	for ended < w.processes {
		var l line
		select {
		case l = <-lines:
		case err := <-fed:
			if err != nil {
				return 0, nil, err
			}
			continue
		case <-ctx.Done():
			return 0, nil, fmt.Errorf("%v of %d tasks have run: %w", ran, w.n, context.Cause(ctx))
		}

		switch {
		case l.err != nil:
			return 0, nil, l.err
		case l.Ready:
			if ready++; ready == w.processes {
				began = time.Now()
				if err := w.begin(ctx, inputs, fed); err != nil {
					return 0, nil, err
				}
			}
			continue
		case l.Ended:
			ended++
			for _, i := range l.Which {
				times[i]++
			}
			continue
		}

		ran[l.who] = l.Ran
		if sum(ran) == w.n {
			for _, in := range inputs {
				in.Close()
			}
		}
	}

	return time.Since(began), times, nil
}

// begin tells each process to start working, and starts to add the tasks unless
// the database has them already.
func (w crew) begin(ctx context.Context, inputs []io.WriteCloser, fed chan<- error) error {
	for _, in := range inputs {
		if _, err := io.WriteString(in, "go\n"); err != nil {
			return err
		}
	}

	if w.feed != nil {
		go func() { fed <- w.feed(ctx) }()
	}
	return nil
}

func sum[T int | float64](list []T) (n T) {
	for _, i := range list {
		n += i
	}
	return n
}
