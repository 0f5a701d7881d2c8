package main

import (
	"context"
	"errors"
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

	"example.com/runner/internal/pgserver"
)

// The test binary is the programs of the scripts, too: "runner" in a script is this main, in a process of its own, and
// "runnerdemo" somebody's own program, which registers functions.
func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) { // by a shell that runs the tests in its background: scripts end what they have started by INT
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	testscript.Main(m, map[string]func(){"runner": main, "runnerdemo": demo, "notifysink": notifySink})
}

// TestScript runs the scripts, which specify the command line. A script starts in an empty directory with a HOME of its own
// and RUNNER_DB set to a file there, so that no test run ever finds a database in use (as root, /var/lib/runner would be
// one); of the environment outside it sees PATH only. To rewrite the goldens: UPDATE_SCRIPTS=1 go test -run TestScript .
func TestScript(t *testing.T) {
	t.Parallel()
	// by nohup; not in TestMain, since a runner of the scripts begins there, too, and may be told to ignore it
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
			env.Setenv("NODE_PATH", os.Getenv("NODE_PATH")) // where its modules are installed, if they are
			env.Setenv("GORACE", "atexit_sleep_ms=0")       // or each process of go test -race lingers for a second
			env.Setenv("TZ", "Europe/Berlin")
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": expectStatus, "await": awaitText, "gone": expectGone,
			"sumbatch": makeSumBatch, "sumcheck": checkSums, "elapsed": printElapsed,
			"window": checkWindow, "usego": useGo, "order": checkOrder, "tmpfs": mountTmpfs, "onserver": useServer, "remount": remount,
			"block": writeBlock},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "mount":
				return mayMount(), nil
			case "postgresql":
				_, err := server()
				return !errors.Is(err, pgserver.ErrNone), nil
			case "node-sqlite":
				return exec.Command("node", "-e", "require('better-sqlite3')").Run() == nil, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
	})
}

// server is the PostgreSQL server of the scripts: one for all of them, with a database for each.
var server = sync.OnceValues(func() (*pgserver.Server, error) { return pgserver.Start(context.Background()) })

var serverDatabases atomic.Int64

// useServer is the script command "onserver": from now on RUNNER_DB is a fresh schema on a PostgreSQL server.
func useServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: onserver")
	}
	s, err := server()
	ts.Check(err)
	ts.Setenv("RUNNER_DB", s.Address("postgres", fmt.Sprintf("search_path=script%d", serverDatabases.Add(1))))
	ts.Setenv("SERVER", s.Dir)
}

// expectStatus is the script command "status N program [args...]": it runs the program and checks its exit status.
// stdout and stderr can then be looked at as after exec.
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
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// awaitText is the script command "await FILE REGEXP": it returns when the file is there and has a line that matches.
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
	ts.Fatalf("%s has no %q after a minute: %s %v", args[0], args[1], text, err)
}

// expectGone is the script command "gone FILE...": no process whose number stands in one of the files exists. One that is dead and
// was not yet waited for, by an init that takes its time, does not count as existing.
func expectGone(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(name)))
		ts.Check(err)
		stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // 4711 (sh) Z ...
		_, after, _ := strings.Cut(string(stat), ") ")
		process, err := os.FindProcess(pid)
		if exists := err == nil && process.Signal(syscall.Signal(0)) == nil && !strings.HasPrefix(after, "Z"); exists != neg {
			ts.Fatalf("process %d of %s: exists is %v", pid, name, exists)
		}
	}
}
