package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/runner/runner/admin"
)

// idle returns the processor time that an idle worker process uses, as a
// percentage of one processor. The measurement begins one second after the
// start and takes five seconds.
func idle(ctx context.Context, e *env) (float64, error) {
	r, err := filled(ctx, e, 0)
	if err != nil {
		return 0, err
	}
	defer r.Close()

	w, err := startWorker(ctx, child{Path: admin.Path(r), Concurrency: 10})
	if err != nil {
		return 0, err
	}

	const span = 5 * time.Second
	time.Sleep(time.Second)
	before, err := onProcessor(w.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}

	time.Sleep(span)
	after, err := onProcessor(w.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}

	_, err = w.end(true)
	return 100 * (after - before).Seconds() / span.Seconds(), err
}

// onProcessor returns the processor time of a process. It adds the times of all
// threads, which the kernel counts in nanoseconds.
func onProcessor(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			return 0, err
		}
		sum += time.Duration(ns)
	}

	return sum, err
}
