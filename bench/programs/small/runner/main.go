// This program is the smallest with runner; see README.md of bench/programs.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

var greet = jobs.Define[string]("greet")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	r, err := runner.Open(ctx, filepath.Join(dir, "small.db"), runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()

	r.Register(greet.Handler(func(_ context.Context, name string) error {
		fmt.Println("hello", name)
		return nil
	}))
	if _, err := r.Enqueue(ctx, greet.With("world")); err != nil {
		return err
	}
	return r.Work(ctx, runner.WorkOptions{Concurrency: 1})
}
