//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// buildRunner builds the program with the flags of a release.
func buildRunner(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "runner")
	out, err := exec.Command("go", "build", "-trimpath", "-tags", "urfave_cli_no_docs", "-ldflags", "-s -w", "-o", path,
		".").CombinedOutput()
	if err != nil {
		b.Fatalf("go build: got error %v, want none\n%s", err, out)
	}
	return path
}

// BenchmarkEnqueueProcess measures how long a new process of "runner enqueue"
// takes. Meanwhile this process keeps the database open, as a worker would.
func BenchmarkEnqueueProcess(b *testing.B) {
	b.StopTimer()
	program := buildRunner(b)
	db := filepath.Join(b.TempDir(), "runner.db")
	r, err := runner.Open(b.Context(), db, runner.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	if _, err := admin.Queues(b.Context(), r); err != nil { // opens a connection, which then stays open
		b.Fatal(err)
	}
	var bare time.Duration
	for range b.N {
		began := time.Now()
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
		bare += time.Since(began)
	}
	peak := int64(0)
	b.StartTimer()
	began := time.Now()
	for range b.N {
		cmd := exec.Command(program, "--db", db, "enqueue", "--", "true")
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		peak = max(peak, int64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss))
	}
	took := time.Since(began)
	b.StopTimer()
	b.ReportMetric(took.Seconds()*1000/float64(b.N), "ms")
	b.ReportMetric(took.Seconds()/bare.Seconds(), "x_true")
	b.ReportMetric(float64(peak)/1024, "MB")
}

// BenchmarkEnqueueBatch adds b.N tasks with one call of "runner enqueue
// --batch". For comparison it also adds them with EnqueueSeq.
func BenchmarkEnqueueBatch(b *testing.B) {
	b.StopTimer()
	program := buildRunner(b)
	dir := b.TempDir()
	var lines bytes.Buffer
	for i := range b.N {
		fmt.Fprintf(&lines, "{\"args\":[\"/bin/true\",\"%d\"],\"queue\":\"media\",\"priority\":%d}\n", i, i%10)
	}
	file := filepath.Join(dir, "tasks.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	r, err := runner.Open(b.Context(), filepath.Join(dir, "library.db"), runner.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	began := time.Now()
	if _, err := r.EnqueueSeq(b.Context(), func(yield func(jobs.Spec) bool) {
		for i := range b.N {
			if !yield(jobs.Command(command.Command{Argv: []string{"/bin/true", fmt.Sprint(i)}}, jobs.Queue("media"), jobs.Priority(i%10))) {
				return
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	library := time.Since(began)

	b.StartTimer()
	began = time.Now()
	cmd := exec.Command(program, "--db", filepath.Join(dir, "cli.db"), "enqueue", "--batch", file)
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/took.Seconds(), "lines/s")
	b.ReportMetric(library.Seconds()/took.Seconds(), "x_library")
	b.ReportMetric(float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024, "MB")
}
