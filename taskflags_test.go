//go:build unix

package main

import (
	"cmp"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit/sample"
)

// setSample sets an option to a value that is not its default. It leaves two
// options empty: the path, because enqueue would replace it, and the event,
// because no flag sets it.
func setSample(o *taskspec.OptionInfo, s *jobs.Spec) {
	switch sample.Set(o, s, os.TempDir()); o.Key {
	case "path":
		s.Path = ""
	case "event":
		s.Event = ""
	}
}

// commandTest checks the command line that runner shows for a task. It enqueues
// a task, runs the command line that runner shows for it, and compares the two
// tasks.
type commandTest struct {
	*testing.T
	dir  string
	base command.Command
}

func newCommandTest(t *testing.T) *commandTest {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	c := &commandTest{t, dir, command.Command{Argv: []string{"true"}, Path: program, Dir: dir}}
	r := c.open(template)
	for range 2 {
		c.add(r, jobs.Command(c.base))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// template is a database with two tasks, on which other tasks can depend.
const template = "template.db"

// copied opens a copy of the template. The caller closes it.
func (c *commandTest) copied(name string) *runner.Runner {
	text, err := os.ReadFile(filepath.Join(c.dir, template))
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, name), text, 0o600)
	}
	if err != nil {
		c.Fatal(err)
	}
	return c.open(name)
}

func (c *commandTest) open(name string) *runner.Runner {
	r, err := runner.Open(c.Context(), filepath.Join(c.dir, name), runner.Options{})
	if err != nil {
		c.Fatal(err)
	}
	return r
}

func (c *commandTest) add(r *runner.Runner, s jobs.Spec) int64 {
	c.Helper()
	added, err := r.EnqueueMany(c.Context(), s)
	if err != nil {
		c.Fatal(err)
	}
	return added[0].ID
}

// compare enqueues a Spec, runs the command line that runner shows for this
// task, and compares the two tasks.
func (c *commandTest) compare(name string, s jobs.Spec, reveal bool) {
	c.Helper()
	get := func(r *runner.Runner, id int64) (jobs.Task, jobs.Spec) {
		task, err := r.Get(c.Context(), id)
		if err != nil {
			c.Fatal(err)
		}
		spec := taskspec.SpecOf(&task)
		if spec.Input, err = ui.ReadInput(c.Context(), r, task); err != nil {
			c.Fatal(err)
		}
		return task, spec
	}
	r := c.copied(name + ".db")
	defer r.Close()
	first, want := get(r, c.add(r, s))
	line := taskspec.Command(&first, time.Now(), reveal)
	again := c.copied(name + ".again.db")
	defer again.Close()
	shell := exec.CommandContext(c.Context(), "/bin/sh", "-c", line)
	shell.Dir, shell.Stdin = c.dir, strings.NewReader(string(s.Input))
	shell.Env = append(os.Environ(), "RUNNER_DB="+admin.Path(again), "HOME="+c.dir)
	for name, value := range s.Env {
		if !reveal {
			shell.Env = append(shell.Env, name+"="+value)
		}
	}
	out, err := shell.Output()
	if err != nil {
		c.Fatalf("%s: %s: got error %v, want none: %s", name, line, err, err.(*exec.ExitError).Stderr)
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		c.Fatal(err)
	}
	second, got := get(again, id)
	if string(first.Args) != string(second.Args) || first.Job != second.Job || cmp.Compare(first.State, second.State) != 0 {
		c.Errorf("%s: %s: got %s %s %s, want %s %s %s", name, line, second.State, second.Job, second.Args, first.State, first.Job,
			first.Args)
	}
	for _, o := range taskspec.Options {
		if a, b := o.Field(&got), o.Field(&want); !reflect.DeepEqual(a, b) {
			c.Errorf("%s: %s: %s: got %v, want %v", name, line, o.Key, a, b)
		}
	}
}

func TestCommandOfTaskEnqueuesSameTask(t *testing.T) {
	t.Parallel()
	c := newCommandTest(t)
	all := jobs.Command(c.base)
	for _, o := range taskspec.Options {
		s := jobs.Command(c.base)
		setSample(o, &s)
		c.compare(o.Key, s, false)
		// leave out the options "in" and "expires_at", which contradict
		// "run_at" and "expires_in"
		if o.Key != "in" && o.Key != "expires_at" {
			setSample(o, &all)
		}
	}
	c.compare("all", all, false)
	c.compare("revealed", all, true)
	c.base.Argv = []string{"true", "", "a\n\tb", "'", "--queue", "$HOME", "é"}
	c.compare("argv", jobs.Command(c.base, jobs.MaxAttempts(math.MaxInt32), func(s *jobs.Spec) { s.OutputLimit = 0 },
		func(s *jobs.Spec) { s.KillAfter = 0 }), false)
	shell := command.Shell("- echo\n'x'")
	shell.Dir = c.dir
	c.compare("shell", jobs.Command(shell), false)
	c.compare("function", jobs.Define[any]("email.send").With(map[string]string{"to": "ann's"}, jobs.MaxAttempts(1), jobs.Label("-")),
		false)
	c.compare("default", jobs.Define[any]("email.send").With(nil, jobs.AtMostOnce()), false)
}
