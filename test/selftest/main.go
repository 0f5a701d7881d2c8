// Selftest checks the promises of docs/reliability.md on the machine it runs
// on, with its disk and its kernel:
//
//	go run ./test/selftest
//	go run ./test/selftest -for 30m -dir /mnt/backup
//	go run ./test/selftest -postgres
//
// Workers run a demanding workload in a new database below -dir, while they're
// killed, stopped and starved several times a second. Then each step of the
// recorded history is checked. The test touches no other database, uses all
// processors, and fills a filesystem smaller than 1 GB for moments. As root it
// also starts processes of the user 65534 and mounts a file in a mount
// namespace of its own. It runs on Linux only.
//
// It exits with status 0 if there's no violation. With a violation it exits
// with status 1 and keeps the database, the logs and the histories.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"example.com/runner/runner/commands"
	"example.com/runner/test/selftest/harness"
)

func main() {
	if commands.Guardian() { // the workers of the test start this program as their guardian
		return
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	if len(args) > 2 && args[0] == harness.RoleCommand {
		return runRole(ctx, stderr, args[1], args[2], args[3:])
	}

	o, err := readOptions(args, stderr)
	if err != nil {
		return 2
	}

	report, err := test(ctx, o, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "selftest: the test could not run:", err)
		return 1
	}
	if o.json {
		err = json.NewEncoder(stdout).Encode(report)
	} else {
		err = printReport(stdout, report)
	}
	if err != nil || len(report.Violations) > 0 {
		return 1
	}

	return 0
}

type options struct {
	harness.Options

	json bool
}

func readOptions(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("selftest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&o.For, "for", time.Minute, "how long workers are killed and stopped")
	flags.Uint64Var(&o.Seed, "seed", 0, "`seed` of the random choices; the timing may still lead to other events (default random)")
	flags.StringVar(&o.Dir, "dir", "", "`directory` in which the test creates one for its files (default the system's temporary directory)")
	flags.StringVar(&o.Runner, "runner", "", "`program` to test (default: go build)")
	flags.BoolVar(&o.Postgres, "postgres", false,
		"test on a PostgreSQL server with a standby, started from the installed programs, and kill it too")
	flags.BoolVar(&o.json, "json", false, "print the report as JSON")
	if err := flags.Parse(args); err != nil {
		return o, err
	}

	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("got the argument %q, want none", flags.Arg(0))
	case o.For < time.Second:
		err = fmt.Errorf("-for %v is too short; use 1s or more", o.For)
	}

	if err != nil {
		fmt.Fprintln(stderr, "selftest:", err)
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64N(1e9) + 1
	}

	return o, err
}

// test runs the test and reports each of its phases on stderr.
func test(ctx context.Context, o options, stderr io.Writer) (_ *harness.Report, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	if o.Self, err = os.Executable(); err != nil {
		return nil, err
	}
	if o.Runner == "" {
		dir, err := os.MkdirTemp("", "selftest-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()

		o.Runner = filepath.Join(dir, "runner")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.Runner, "example.com/runner")
		if text, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build runner: %w\n%s", err, text)
		}
	}
	if o.Runner, err = filepath.Abs(o.Runner); err != nil {
		return nil, err
	}

	o.Progress = func(phase string) { fmt.Fprintf(stderr, "seed %d: %s\n", o.Seed, phase) }
	return harness.Run(ctx, o.Options)
}
