package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"example.com/runner/runner"
)

// commands runs /bin/true many times, two processes at a time. runner adds all
// commands in one transaction. It also stores the exit status and the output of
// each command, which the other programs don't store.

const commandCount = 500

func commandSystems() map[string]func(context.Context, *env) (float64, error) {
	return map[string]func(context.Context, *env) (float64, error){
		"xargs -P2":        shell(`seq %d | xargs -P2 -I{} true`),
		"GNU parallel -j2": shell(`yes true | head -n %d | parallel -j2`),
		"task-spooler -S 2": shell(`export TS_SOCKET=$PWD/tsp TMPDIR=$PWD; trap 'tsp -K' EXIT; tsp -S 2
for i in $(seq %d); do tsp true >/dev/null; done; while tsp -l | grep -Eq 'queued|running'; do sleep 0.01; done`),
		"nq": shell(`export NQDIR=$PWD; for i in $(seq %d); do nq true >/dev/null; done; nq -w`),
	}
}

// shell measures how many commands per second a shell script runs. A %d in the
// script stands for the number of commands.
func shell(script string) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(commandCount)
		cmd := exec.CommandContext(ctx, "bash", "-c", fmt.Sprintf(script, n))
		cmd.Dir = e.dir
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return 0, fmt.Errorf("%w: %s", err, complaint.Bytes())
		}
		return perSecond(n, time.Since(began)), nil
	}
}

func ourCommands(ctx context.Context, e *env) (float64, error) {
	n := e.size(commandCount)
	lines := strings.Repeat("[\"true\"]\n", n)
	began := time.Now()
	if _, err := e.runner(ctx, lines, "enqueue", "--batch", "-"); err != nil {
		return 0, err
	}
	if _, err := e.runner(ctx, "", "work", "--until-empty", "-c", "2"); err != nil {
		return 0, err
	}

	took := time.Since(began)
	return perSecond(n, took), e.hasCounts(ctx, 0, n)
}

// hasCounts returns an error unless the database has these numbers of waiting
// and completed tasks.
func (e *env) hasCounts(ctx context.Context, waiting, completed int) error {
	r, err := runner.Open(ctx, e.path("runner.db"), runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()

	q := &queue{count: func(ctx context.Context) (int, int, error) { return ourCounts(ctx, r) }}
	return q.hasCounts(ctx, waiting, completed)
}

// outcome is the result of a process that has ended.
type outcome struct {
	stdout []byte
	took   time.Duration
}

// runner runs the runner binary on the measurement's database.
func (e *env) runner(ctx context.Context, stdin string, args ...string) (outcome, error) {
	return e.process(ctx, stdin, e.binary, args...)
}

func (e *env) process(ctx context.Context, stdin, name string, args ...string) (outcome, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = e.dir
	cmd.Env = append(os.Environ(), "RUNNER_DB="+e.path("runner.db"))
	cmd.Stdin = strings.NewReader(stdin)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		return outcome{}, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, complaint.Bytes())
	}

	return outcome{out.Bytes(), took}, nil
}
