package runner_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
)

// workerVariable is an environment variable that makes the test program a
// worker, for tests that kill a worker. Its value is the path of a database,
// the number of slots and the lease.
const workerVariable = "RUNNER_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(unhookedVariable) != "" { // here the test program acts as a program whose main does not call Guardian
		os.Exit(unhooked())
	}
	if commands.Guardian() {
		return
	}
	for variable, child := range map[string]func(path string, how []string) error{workerVariable: testWorker, shopVariable: shop,
		flashVariable: flashProgram, batchVariable: batchWorker, finishedVariable: finishedProgram} {
		words := strings.Fields(os.Getenv(variable))
		if len(words) == 0 {
			continue
		}
		if err := child(words[0], words[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	manyAtOnce()
	goleak.VerifyTestMain(testkit.NoOpenFiles(m))
}

// manyAtOnce runs eight parallel tests at once unless -parallel says otherwise,
// because most of them wait for a lease to end and use no processor meanwhile.
func manyAtOnce() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
}

var (
	hang  = jobs.Define[any]("hang")  // hang reports its start, and runs until its worker is killed
	quick = jobs.Define[any]("quick") // quick ends at once
)

func handlers(r *runner.Runner) {
	hanging := func(ctx context.Context, _ any) error {
		runner.Progress(ctx, 0, 0, "begun")
		<-ctx.Done()
		return ctx.Err()
	}
	r.Register(commands.Handler(commands.Options{}), hang.Handler(hanging),
		quick.Handler(func(context.Context, any) error { return nil }))
}

// unhookedVariable is an environment variable that makes the test program act
// like a program that does not call Guardian. Its value is the path of a
// database.
const unhookedVariable = "RUNNER_TEST_UNHOOKED"

func unhooked() int {
	r, err := runner.Open(context.Background(), os.Getenv(unhookedVariable), runner.Options{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	r.Register(commands.Handler(commands.Options{GuardianPath: os.Getenv("GUARDIAN")}))
	if err := r.Work(context.Background(), runner.WorkOptions{UntilEmpty: true}); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func testWorker(path string, how []string) error {
	n, err := strconv.Atoi(how[0])
	if err != nil {
		return err
	}
	lease, err := time.ParseDuration(how[1])
	if err != nil {
		return err
	}
	r, err := runner.Open(context.Background(), path, runner.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	handlers(r)
	return r.Work(context.Background(), runner.WorkOptions{Concurrency: n, Lease: lease})
}

// longLease is longer than any test. So if a task of a dead worker runs again
// during the test, the next worker has not waited until the lease expired.
const longLease = time.Hour

// startWorker starts a worker in another process.
func startWorker(t *testing.T, r *runner.Runner, slots int, lease time.Duration) *os.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(self)
	worker.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %v", workerVariable, admin.Path(r), slots, lease), "GORACE=atexit_sleep_ms=0")
	worker.Stderr = os.Stderr
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	})
	return worker.Process
}

// until waits until done returns true. It calls this function after each change
// of the database.
func until(t *testing.T, r *runner.Runner, done func() bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	defer stop()
	if err := admin.Changes(ctx, r, func() (bool, error) { return done(), nil }); err != nil {
		t.Fatal(err)
	}
}
