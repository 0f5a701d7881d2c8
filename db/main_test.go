package db

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"example.com/runner/db/internal/sqlite"
	"example.com/runner/db/schema"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

// childVariable is the environment variable that makes this test binary a child
// process. The child runs the childCommand in the variable and exits.
const childVariable = "RUNNER_DB_TEST_CHILD"

// childCommand describes the operation of a child process on a file.
type childCommand struct {
	Do      string
	Path    string
	Options Options
	Step    string // SQL of a migration that the child's program has
}

// report is a result that a child process prints as one line of JSON.
type report struct {
	Kind  string // kind of the error; empty if there is none
	Error string
	ID    int64 // id of an enqueued task
	Free  bool  // whether a write was accepted
}

var kinds = map[error]string{jobs.ErrNoDatabase: "no_database", jobs.ErrSchema: "schema", jobs.ErrPermission: "permission",
	jobs.ErrBusy:    "busy",
	jobs.ErrCorrupt: "corrupt", jobs.ErrInvalid: "invalid", jobs.ErrFull: "full"}

func kindOf(err error) string {
	if err == nil {
		return ""
	}
	problem, ok := errors.AsType[*jobs.Error](err)
	if !ok {
		return "no problem: " + err.Error()
	}
	return kinds[problem.Kind]
}

func TestMain(m *testing.M) {
	text := os.Getenv(childVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var e childCommand
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		panic(err)
	}
	e.run()
}

func say(r report) {
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		panic(err)
	}
}

func (e childCommand) run() {
	ctx := context.Background()
	if e.Do == "keep" { // keep the file open until stdin ends; the file may have any version of the schema
		raw, err := sqlite.Connect(e.Path, "rw")
		if err == nil {
			err = raw.Get(new(int), "SELECT count(*) FROM sqlite_schema")
		}
		say(report{Kind: kindOf(err)})
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	if e.Step != "" {
		schema.Added = addedStep(e.Step)
	}
	d, err := Open(ctx, e.Path, e.Options)
	if err != nil {
		say(report{Kind: kindOf(err), Error: err.Error()})
		return
	}
	switch e.Do {
	case "open":
		say(report{})
	case "write": // insert one task
		added, err := d.Insert(ctx, []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}, time.Now())
		r := report{Kind: kindOf(err), Free: err == nil}
		if err != nil {
			r.Error = err.Error()
		} else {
			r.ID = added[0].ID
		}
		say(r)
	case "flood": // insert tasks until the process is killed
		for {
			added, err := d.Insert(ctx, []jobs.Spec{jobs.Command(commands.Command{Argv: []string{"true"}})}, time.Now())
			if err != nil {
				panic(err)
			}
			say(report{ID: added[0].ID})
		}
	case "hold": // hold the write lock until stdin ends
		err := d.update(ctx, normal, func(*tx) error {
			say(report{})
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		})
		if err != nil {
			panic(err)
		}
	}
	if err := d.Close(); err != nil {
		panic(err)
	}
}

// child is a process that runs a childCommand.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, e childCommand, change func(*exec.Cmd)) *child {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	// another user can execute the test binary by this path, even if the binary
	// is in a private directory
	c := &child{Cmd: exec.Command("/proc/self/exe")}
	if self, err := os.Executable(); err == nil && change == nil {
		c.Path = self
	}
	c.Env = append(os.Environ(), childVariable+"="+string(text))
	c.Stderr = os.Stderr
	if change != nil {
		change(c.Cmd)
	}
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // only needed after a failed test, when the child may still run
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// next returns the next report of the child. ok is false if there is none.
func (c *child) next() (r report, ok bool) {
	if !c.out.Scan() {
		return r, false
	}
	if err := json.Unmarshal(c.out.Bytes(), &r); err != nil {
		return report{Error: fmt.Sprintf("%v: %s", err, c.out.Bytes())}, false
	}
	return r, true
}

// send runs a child until it exits, and returns its only report.
func send(t *testing.T, e childCommand, change func(*exec.Cmd)) report {
	t.Helper()
	c := start(t, e, change)
	r, ok := c.next()
	if !ok {
		t.Errorf("%s: got no report of the child process (%s), want one", e.Do, r.Error)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%s: got error %v of the child process, want none", e.Do, err)
	}
	return r
}
