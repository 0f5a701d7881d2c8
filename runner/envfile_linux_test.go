package runner_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// withEnvFile returns a command that reads its environment from file.
func withEnvFile(file, script string, options ...jobs.Option) jobs.Spec {
	command := command.Shell(script)
	command.EnvFile = file
	return jobs.Command(command, options...)
}

// workEmpty runs all tasks of r in one slot. A task that holds the slot for a
// minute fails the test.
func workEmpty(t *testing.T, r *runner.Runner) {
	t.Helper()
	r.Register(commands.Handler(commands.Options{}))
	ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("a task holds its slot for a minute"))
	defer stop()
	testkit.NoError(t, r.Work(ctx, runner.WorkOptions{Concurrency: 1, UntilEmpty: true}))
	if ctx.Err() != nil {
		t.Fatalf("got %v, want the end of all tasks within a minute", context.Cause(ctx))
	}
}

func wantEnd(t *testing.T, r *runner.Runner, id int64, state jobs.State, reason jobs.Reason, message string) {
	t.Helper()
	task, err := r.Get(t.Context(), id)
	if err != nil || task.State != state || task.Reason != reason || !strings.Contains(task.Error, message) {
		t.Errorf("task %d: got %s, %s, %q, %v; want %s, %s, %q", id, task.State, task.Reason, task.Error, err, state, reason, message)
	}
}

func TestEnvironmentFileIsRegularFileOfAtMost1MiB(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	comment := "#" + strings.Repeat("x", 1022) + "\n" // the comment line has 1 KiB
	largest := write("largest", strings.Repeat(comment, 1023)+"A=b\n#"+strings.Repeat("x", 1018)+"\n")
	write("larger", strings.Repeat(comment, 1024)+"\n")
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, to := range map[string]string{"link": largest, "zero": "/dev/zero", "pipe": at("fifo")} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	r := runnerkit.Open(t, runner.Options{})
	bad := map[int64]string{}
	for file, message := range map[string]string{at("fifo"): "not a regular file", at("pipe"): "not a regular file",
		at("zero"): "not a regular file",
		"/dev/tty": "not a regular file", at("socket"): "not a regular file", dir: "not a regular file",
		at("larger"): "larger than 1048576 bytes", at("none"): "no such file"} {
		bad[runnerkit.Enqueue(t, r, withEnvFile(file, "exit 0")).ID] = "env_file: " + file + ": " + message
	}
	good := runnerkit.Enqueue(t, r, withEnvFile(largest, `test "$A" = b`))
	linked := runnerkit.Enqueue(t, r, withEnvFile(at("link"), `test "$A" = b`))
	workEmpty(t, r)
	for id, message := range bad {
		wantEnd(t, r, id, jobs.Failed, jobs.ReasonStart, message)
	}
	wantEnd(t, r, good.ID, jobs.Completed, "", "")
	wantEnd(t, r, linked.ID, jobs.Completed, "", "")
}

func TestEnvironmentFileThatHangsEndsWithItsAttempt(t *testing.T) {
	hung := filepath.Join(hungFilesystem(t), "env")
	r := runnerkit.Open(t, runner.Options{})
	late := runnerkit.Enqueue(t, r, withEnvFile(hung, "exit 0", jobs.Timeout(200*time.Millisecond))).ID
	cancelled := runnerkit.Enqueue(t, r, withEnvFile(hung, "exit 0")).ID
	neighbour := runnerkit.Enqueue(t, r, jobs.Command(command.Shell("exit 0"))).ID
	go func() {
		running := func() (bool, error) {
			task, err := r.Get(t.Context(), cancelled)
			return task.State == jobs.Running, err
		}
		if err := admin.Changes(t.Context(), r, running); err != nil {
			t.Error(err)
		}
		if _, err := r.Cancel(t.Context(), []int64{cancelled}, runner.CancelOptions{}); err != nil {
			t.Error(err)
		}
	}()
	workEmpty(t, r)
	wantEnd(t, r, late, jobs.Failed, jobs.ReasonTimeout, "ran for longer than 200ms")
	wantEnd(t, r, cancelled, jobs.Cancelled, jobs.ReasonCancelled, "")
	wantEnd(t, r, neighbour, jobs.Completed, "", "")
}

func TestEnvironmentFileThatHangsFailsItsAttempt(t *testing.T) {
	t.Parallel() // this test waits for ten seconds, so other tests run meanwhile
	hung := filepath.Join(hungFilesystem(t), "env")
	r := runnerkit.Open(t, runner.Options{})
	id := runnerkit.Enqueue(t, r, withEnvFile(hung, "exit 0")).ID
	workEmpty(t, r)
	wantEnd(t, r, id, jobs.Failed, jobs.ReasonStart, "env_file: "+hung+": no answer within 10s")
}

func TestHungFilesystemDelaysOnlyTaskThatUsesIt(t *testing.T) {
	dir := hungFilesystem(t)
	r := runnerkit.Open(t, runner.Options{})
	timeout := jobs.Timeout(200 * time.Millisecond)
	in := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}, Dir: filepath.Join(dir, "cwd")}, timeout)).ID
	program := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{filepath.Join(dir, "program")}}, timeout)).ID
	neighbour := runnerkit.Enqueue(t, r, jobs.Command(command.Shell("exit 0"))).ID
	workEmpty(t, r)
	wantEnd(t, r, in, jobs.Failed, jobs.ReasonTimeout, "ran for longer than 200ms")
	wantEnd(t, r, program, jobs.Failed, jobs.ReasonTimeout, "ran for longer than 200ms")
	wantEnd(t, r, neighbour, jobs.Completed, "", "")
}

// hungFilesystem mounts a filesystem whose server never answers, like a network
// filesystem without its server. It returns the directory.
func hungFilesystem(t *testing.T) string {
	t.Helper()
	fuse, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no filesystem can be mounted:", err)
	}
	dir := t.TempDir()
	if err := unix.Mount("hung", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse)); err != nil {
		_ = unix.Close(fuse)
		t.Skip("no filesystem can be mounted:", err)
	}
	t.Cleanup(func() {
		_ = unix.Close(fuse) // this ends every call that waits for the filesystem, with an error
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestTooLongCommandFails(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	long := strings.Repeat("x", 200_000)
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte("LONG="+long), 0o600); err != nil {
		t.Fatal(err)
	}
	variable := command.Shell("exit 0")
	variable.EnvFile = file
	argument := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true", "a", long}})).ID
	inFile := runnerkit.Enqueue(t, r, jobs.Command(variable)).ID

	workEmpty(t, r)

	wantEnd(t, r, argument, jobs.Failed, jobs.ReasonStart, "argument list too long")
	wantEnd(t, r, inFile, jobs.Failed, jobs.ReasonStart, "argument list too long")
}
