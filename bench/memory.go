package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// Linux counts the memory of the parent process as memory of a new process
// until the new process executes its program. A large parent would therefore
// spoil the measurement. So this program starts a copy of itself, which needs
// little memory, and the copy starts the measured program.

const memoryVariable = "BENCH_MEMORY"

// memory returns the peak memory of a program in bytes. The program uses the
// database of the measurement.
func (e *env) memory(ctx context.Context, words ...string) (int64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}

	cmd := exec.CommandContext(ctx, self, words...)
	cmd.Dir = e.dir
	cmd.Env = append(os.Environ(), "RUNNER_DB="+e.path("runner.db"), memoryVariable+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}

	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// tellMemory runs a program and prints its peak memory in bytes.
func tellMemory(words []string) error {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return err
	}

	_, err := fmt.Println(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10)
	return err
}

// startMemory starts n processes that each enqueue a task. It returns the
// largest of their peak memories, in megabytes.
func startMemory(args func(e *env) []string, n int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		r, err := filled(ctx, e, 0)
		if err != nil {
			return 0, err
		}
		defer r.Close()

		var most int64
		for range e.size(n) {
			one, err := e.memory(ctx, args(e)...)
			if err != nil {
				return 0, err
			}
			most = max(most, one)
		}

		return float64(most) / 1e6, nil
	}
}
