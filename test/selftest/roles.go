package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/commands"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/selftest/harness"
	"example.com/runner/web"
)

// runRole runs this process in a role, such as a worker or an enqueuer; see
// harness.RoleCommand. dir is the directory of the run.
func runRole(ctx context.Context, stderr io.Writer, role, dir string, args []string) (status int) {
	if role == "task" && len(args) == 2 {
		return harness.Task(dir, args[0], args[1])
	}
	if err := play(ctx, stderr, role, dir, args); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", role, err)
		return 1
	}
	return 0
}

func play(ctx context.Context, stderr io.Writer, role, dir string, args []string) error {
	if role == "child" {
		return harness.Child(dir, args)
	}

	args = append(args, "", "", "") // a missing argument becomes an empty one, which is invalid
	switch role {
	case "worker":
		return work(ctx, stderr, dir, args[0], args[1] == "functions")
	case "browse":
		return browse(ctx, dir)
	case "bound":
		if err := harness.Bind(dir); err != nil {
			return err
		}
	}

	self, err := os.Executable()
	if err != nil {
		return err
	}

	seed, errSeed := strconv.ParseUint(args[1], 10, 64)
	ms, errMS := strconv.Atoi(args[2])
	if err := errors.Join(errSeed, errMS); err != nil {
		return err
	}

	ctx, stop := ui.Until(ctx)
	defer stop()

	every := time.Duration(ms) * time.Millisecond
	if role == "sql" {
		return harness.EnqueueSQL(ctx, dir, self, args[0], seed, every)
	}

	began := time.Now()
	r, err := runner.Open(ctx, harness.Database(dir), runner.Options{BusyTimeout: 10 * time.Second, Engine: postgres.Engine()})
	if err != nil && ctx.Err() != nil { // SIGTERM came before the database was open
		return nil
	} else if err != nil {
		return err
	}
	defer r.Close()

	if err := harness.NoteOpening(dir, time.Since(began)); err != nil {
		return err
	}

	return harness.Enqueue(ctx, client(r), dir, self, args[0], seed, every)
}

func browse(ctx context.Context, dir string) error {
	ctx, stop := ui.Until(ctx)
	defer stop()

	r, err := runner.Open(ctx, harness.Database(dir), runner.Options{MustExist: true, Engine: postgres.Engine()})
	if err != nil && ctx.Err() != nil { // SIGTERM came before the database was open
		return nil
	} else if err != nil {
		return err
	}
	defer r.Close()

	return harness.Browse(ctx, dir, web.Handler(r, web.Options{Authorize: func(*http.Request) error { return nil }}))
}

func client(r *runner.Runner) harness.Client {
	return harness.Client{
		Enqueue: func(ctx context.Context, spec jobs.Spec) (int64, error) {
			task, err := r.Enqueue(ctx, spec)
			return task.ID, err
		},
		Cancel: func(ctx context.Context, id int64) error {
			_, err := r.Cancel(ctx, []int64{id}, runner.CancelOptions{})
			return err
		},
		Retry: func(ctx context.Context, id int64) error {
			moved, err := r.Retry(ctx, []int64{id}, runner.RetryOptions{})
			if err == nil && len(moved) == 1 && moved[0].State == jobs.Running {
				return jobs.ErrConflict
			}
			return err
		},
	}
}

// work runs a worker that has the functions of the workload, and a shorter
// lease than a worker of the command "runner work".
func work(ctx context.Context, stderr io.Writer, dir, name string, functionsOnly bool) error {
	log := slog.New(slog.NewTextHandler(stderr, nil))
	r, err := runner.Open(ctx, harness.Database(dir), runner.Options{MustExist: true, Log: log, Engine: postgres.Engine()})
	if err != nil {
		return err
	}
	defer r.Close()

	functions, err := harness.Functions(dir)
	if err != nil {
		return err
	}

	r.Register(functions...)
	if !functionsOnly {
		r.Register(commands.Handler(commands.Options{OwnProcess: true}))
	}

	ctx, stop := ui.HandleWorker(ctx, r, log, false)
	defer stop()

	o := runner.WorkOptions{Name: name, Lease: harness.Lease, Concurrency: harness.Slots, Grace: harness.Grace,
		ForeignTriggers: true}
	if err := r.Work(ctx, o); ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}

	return nil
}
