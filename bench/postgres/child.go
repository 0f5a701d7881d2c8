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

// Each worker is a process of its own. To start a worker, this program starts itself again with the parameters of the worker in the
// environment.

const childVariable = "BENCH_POSTGRES_CHILD"

type child struct {
	System, Address string
	Concurrency     int
}

// childSays is a line that a child process prints. It says that the child is ready, how many tasks it has run, or at the end which tasks it
// has run.
type childSays struct {
	Ready bool
	Ran   int
	Ended bool
	Which []int
}

const tellEvery = 5 * time.Millisecond

// beChild opens the queue, waits for a line, works until its standard input ends, and prints the tasks that it has run.
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
	addresses              []string // the processes use the addresses in turn
	n                      int
	processes, concurrency int
	feed                   func(context.Context) error // adds the tasks while the processes work; nil if all tasks are there already
}

// work starts the processes, and returns the time that the tasks took. It returns an error unless each task ran exactly once.
func (w crew) work(ctx context.Context) (time.Duration, error) {
	system, addresses, n, processes, concurrency := w.system, w.addresses, w.n, w.processes, w.concurrency
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	type line struct {
		who int
		childSays
		err error
	}
	lines := make(chan line)
	var inputs []io.WriteCloser
	var commands []*exec.Cmd
	for i := range processes {
		text, err := json.Marshal(child{system, addresses[i%len(addresses)], concurrency})
		if err != nil {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), childVariable+"="+string(text))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return 0, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return 0, err
		}
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		inputs, commands = append(inputs, in), append(commands, cmd)
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
	}
	ready, ended, ran := 0, 0, make([]int, processes)
	times := make([]int, n)
	var began time.Time
	fed := make(chan error, 1)
	for ended < processes {
		var l line
		select {
		case l = <-lines:
		case err := <-fed:
			if err != nil {
				return 0, err
			}
			continue
		case <-ctx.Done():
			return 0, fmt.Errorf("%v of %d tasks have run: %w", ran, n, context.Cause(ctx))
		}
		switch {
		case l.err != nil:
			return 0, l.err
		case l.Ready:
			if ready++; ready == processes {
				began = time.Now()
				for _, in := range inputs {
					if _, err := io.WriteString(in, "go\n"); err != nil {
						return 0, err
					}
				}
				if w.feed != nil {
					go func() { fed <- w.feed(ctx) }()
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
		if sum(ran) == n {
			for _, in := range inputs {
				in.Close()
			}
		}
	}
	took := time.Since(began)
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

func sum(list []int) (n int) {
	for _, i := range list {
		n += i
	}
	return n
}
