package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/pgserver"
	"example.com/runner/test/testkit"
)

// TestMain makes the test binary act as the programs that the scripts in
// testdata/script call. Each call is a process of its own. Under the name
// "runner", the binary calls main of this package. Under the name "runnerdemo",
// it is a user's program with registered functions.
func TestMain(m *testing.M) {
	if commands.Guardian() { // workers in this process start the test binary as their guardian
		return
	}
	if signal.Ignored(os.Interrupt) { // a shell makes its background processes ignore INT, but the scripts stop processes with INT
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	parallel := flag.Lookup("test.parallel")
	if err := parallel.Value.Set("8"); err != nil { // scripts wait most of their time; -parallel changes it
		panic(err)
	}
	testscript.Main(m, map[string]func(){"runner": main, "runnerdemo": demo, "notifysink": notifySink})
}

// TestScript runs the scripts in testdata/script, which specify the command
// line of runner. A script starts in an empty directory with its own HOME, and
// with RUNNER_DB set to a file there. So no script uses a real database, such
// as the one in /var/lib/runner for root. Of the environment variables of the
// test, a script gets only PATH and NODE_PATH.
//
// To rewrite the golden files: UPDATE_SCRIPTS=1 go test -run TestScript .
func TestScript(t *testing.T) {
	t.Parallel()
	// Under nohup, this process ignores HUP. The test must not ignore it, so
	// catch HUP. TestMain cannot do this, because TestMain also runs in each
	// "runner" that a script starts, and some scripts want "runner" to ignore
	// HUP.
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			env.Setenv("HOME", home)
			env.Setenv("RUNNER_DB", filepath.Join(env.WorkDir, "runner.db"))
			env.Setenv("USER", "ann")
			env.Setenv("NODE_PATH", os.Getenv("NODE_PATH")) // directory of installed node modules
			env.Setenv("GORACE", "atexit_sleep_ms=0")       // without this, each process of go test -race waits 1 s before it exits
			env.Setenv("TZ", "Europe/Berlin")
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": expectStatus, "await": awaitText, "workers": awaitWorkers,
			"gone":     expectGone,
			"sumbatch": makeSumBatch, "sumcheck": checkSums,
			"window": checkWindow, "usego": useGo, "order": checkOrder, "tmpfs": mountTmpfs, "onserver": useServer, "remount": remount,
			"block": writeBlock},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Getuid() == 0, nil
			case "mount":
				return mayMount(), nil
			case "full":
				return testkit.Full(), nil
			case "postgresql":
				if !testkit.Full() {
					return false, nil
				}
				_, err := server()
				return !errors.Is(err, pgserver.ErrNone), nil
			case "node-sqlite":
				return exec.Command("node", "-e", "require('better-sqlite3')").Run() == nil, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
	})
}

// server returns the PostgreSQL server that all scripts share. Each script has
// a schema of its own.
var server = sync.OnceValues(func() (*pgserver.Server, error) { return pgserver.Start(context.Background()) })

var serverDatabases atomic.Int64

// useServer implements the script command "onserver": it sets RUNNER_DB to a
// new schema on a PostgreSQL server.
func useServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: onserver")
	}
	s, err := server()
	ts.Check(err)
	ts.Setenv("RUNNER_DB", s.Address("postgres", fmt.Sprintf("search_path=script%d", serverDatabases.Add(1))))
	ts.Setenv("SERVER", s.Dir)
}

// expectStatus implements the script command "status N program [args...]". It
// runs the program and checks its exit status. As with exec, the script can
// then check stdout and stderr.
func expectStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("got exit status %d, want %d", got, want)
	}
}

// awaitText implements the script command "await FILE REGEXP". It waits until
// the file exists and has a line that matches REGEXP.
func awaitText(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE REGEXP")
	}
	want, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var text []byte
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if text, err = os.ReadFile(ts.MkAbs(args[0])); err == nil && want.Match(text) {
			return
		}
	}
	ts.Fatalf("%s: got %s (%v) after a minute, want %q", args[0], text, err, args[1])
}

// awaitWorkers implements the script command "workers N". It waits until N
// workers are ready, so that a signal stops them in an orderly way.
func awaitWorkers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: workers N")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)

	ctx := context.Background()
	r, err := runner.Open(ctx, ts.Getenv("RUNNER_DB"), runner.Options{})
	ts.Check(err)
	defer r.Close()

	var workers []admin.Worker
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		workers, err = admin.Workers(ctx, r)
		ts.Check(err)
		if len(workers) == want {
			return
		}
	}
	ts.Fatalf("got %d workers after a minute, want %d", len(workers), want)
}

// expectGone implements the script command "gone FILE...". Each file contains
// the id of a process. The command fails if one of these processes still runs.
// A process that has exited does not count, even if its parent has not waited
// for it yet.
func expectGone(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(name)))
		ts.Check(err)
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // /proc/PID/stat begins like this: "4711 (sh) Z"
		_, after, _ := strings.Cut(string(stat), ") ")
		process, err := os.FindProcess(pid)
		if exists := err == nil && process.Signal(syscall.Signal(0)) == nil && !strings.HasPrefix(after, "Z"); exists != neg {
			ts.Fatalf("process %d of %s exists: got %v, want %v", pid, name, exists, neg)
		}
	}
}
