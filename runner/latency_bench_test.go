//go:build unix

package runner_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
)

// stamp is a job whose input is the time of its enqueue on the wall clock, in
// ns.
var stamp = jobs.Define[int64]("stamp", jobs.MaxAttempts(1))

// A benchmark runs this test binary again as a second process, and sets
// RUNNER_BENCH_CHILD for it. In that process, this function enqueues tasks of
// the job "stamp", with a pause before each one. It prints the duration of each
// enqueue.
func init() {
	// the variable has three words: the path of the database (without spaces),
	// the number of tasks, and the pause
	words := strings.Fields(os.Getenv("RUNNER_BENCH_CHILD"))
	if len(words) != 3 {
		return
	}
	n, _ := strconv.Atoi(words[1])
	pause, _ := time.ParseDuration(words[2])
	r, err := runner.Open(context.Background(), words[0], runner.Options{MustExist: true})
	if err != nil {
		panic(err)
	}
	for range n {
		time.Sleep(pause)
		began := time.Now()
		if _, err := r.Enqueue(context.Background(), stamp.With(began.UnixNano())); err != nil {
			panic(err)
		}
		fmt.Println(time.Since(began).Nanoseconds())
	}
	r.Close()
	os.Exit(0)
}

func startChild(b *testing.B, path string, n int, pause time.Duration) (finish func() []time.Duration) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), fmt.Sprintf("RUNNER_BENCH_CHILD=%s %d %s", path, n, pause))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	return func() []time.Duration {
		var took []time.Duration
		for lines := bufio.NewScanner(out); lines.Scan(); {
			ns, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Duration(ns))
		}
		if err := child.Wait(); err != nil {
			b.Fatal(err)
		}
		return took
	}
}

// BenchmarkLatency measures the time from the start of an enqueue to the start
// of the function. The worker is idle, and Options.Sync has its default. The
// benchmark also measures the CPU time of the idle worker.
func BenchmarkLatency(b *testing.B) {
	for _, other := range []bool{false, true} {
		name := map[bool]string{false: "same_process", true: "other_process"}[other]
		b.Run(name, func(b *testing.B) {
			b.StopTimer()
			r := bench(b, runner.SyncFull, 0)
			starts := make(chan time.Duration, b.N)
			r.Register(stamp.Handler(func(_ context.Context, at int64) error {
				starts <- time.Duration(time.Now().UnixNano() - at)
				return nil
			}))
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan error, 1)
			go func() { done <- r.Work(ctx, runner.WorkOptions{Concurrency: 2}) }()
			idle := idleCPU(2 * time.Second)
			b.StartTimer()
			if other {
				startChild(b, admin.Path(r), b.N, 10*time.Millisecond)()
			} else {
				for range b.N {
					time.Sleep(10 * time.Millisecond)
					if _, err := r.Enqueue(b.Context(), stamp.With(time.Now().UnixNano())); err != nil {
						b.Fatal(err)
					}
				}
			}
			times := make([]time.Duration, b.N)
			for i := range times {
				times[i] = <-starts
			}
			b.StopTimer()
			stop()
			if err := <-done; err != nil {
				b.Fatal(err)
			}
			percentiles(b, times, "start_")
			b.ReportMetric(idle*100, "idle_%cpu")
		})
	}
}

// idleCPU returns the share of one core that this process uses while it does
// nothing for the duration d.
func idleCPU(d time.Duration) float64 {
	used := func() time.Duration {
		var u syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
			return 0
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	time.Sleep(d / 2) // earlier work needs some time to end
	before := used()
	time.Sleep(d)
	return (used() - before).Seconds() / d.Seconds()
}

// BenchmarkBeside measures how long an enqueue by another process takes while
// this process runs tasks at full speed. It also measures by how much these
// enqueues slow this process down.
func BenchmarkBeside(b *testing.B) {
	for _, concurrency := range []int{10, 100} {
		b.Run(fmt.Sprintf("c=%d", concurrency), func(b *testing.B) {
			b.StopTimer()
			const tasks = 100_000
			drain := func(beside bool) (perSecond float64, enqueues []time.Duration) {
				r := bench(b, runner.SyncFull, tasks)
				defer r.Close()
				ctx, stop := context.WithCancel(b.Context())
				defer stop()
				var ran atomic.Int64
				r.Register(noop.Handler(func(context.Context, string) error {
					if ran.Add(1) == tasks {
						stop()
					}
					return nil
				}), stamp.Handler(func(context.Context, int64) error { return nil }))
				finish := func() []time.Duration { return nil }
				if beside {
					finish = startChild(b, admin.Path(r), b.N, time.Millisecond)
				}
				began := time.Now()
				if err := r.Work(ctx, runner.WorkOptions{Concurrency: concurrency}); err != nil {
					b.Fatal(err)
				}
				perSecond = float64(ran.Load()) / time.Since(began).Seconds()
				return perSecond, finish()
			}
			alone, _ := drain(false)
			b.StartTimer()
			beside, times := drain(true)
			b.StopTimer()
			percentiles(b, times, "enqueue_")
			b.ReportMetric(beside/alone, "drain_kept")
			b.ReportMetric(alone, "alone/s")
		})
	}
}

// BenchmarkCommands measures tasks with the smallest possible command.
func BenchmarkCommands(b *testing.B) {
	for _, concurrency := range []int{1, 2, 8} {
		b.Run(fmt.Sprintf("c=%d", concurrency), func(b *testing.B) {
			b.StopTimer()
			r, err := runner.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), runner.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			r.Register(commands.Handler(commands.Options{}))
			if _, err := r.EnqueueSeq(b.Context(), repeat(jobs.Command(command.Command{Argv: []string{"true"}}), b.N)); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			for range b.N {
				if err := exec.Command("true").Run(); err != nil {
					b.Fatal(err)
				}
			}
			bare := time.Since(began)
			b.StartTimer()
			began = time.Now()
			if err := r.Work(b.Context(), runner.WorkOptions{Concurrency: concurrency, UntilEmpty: true}); err != nil {
				b.Fatal(err)
			}
			took := time.Since(began)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/took.Seconds(), "commands/s")
			b.ReportMetric(bare.Seconds()/took.Seconds(), "x_one_after_another")
		})
	}
}
