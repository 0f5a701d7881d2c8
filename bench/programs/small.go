package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// smallest are the libraries with a smallest program. The first one only opens
// a database: the sizes of the others are compared with it.
var smallest = []string{"sqlite", "runner", "goqite", "river", "backlite"}

// footprint holds the measurements of a smallest program: it opens a new
// database, enqueues a job, runs it with one worker, and is idle then.
type footprint struct {
	start  time.Duration // from exec to the first job, the shortest of several
	rss    float64       // idle, in MB
	idle   float64       // processor time while idle, in percent of a core
	binary float64       // size of the stripped program, in MB
}

// measureSmall measures the smallest programs: each starts several times in
// turn, then all of them are idle at the same time.
func measureSmall(ctx context.Context, starts int, idle time.Duration) (all []footprint, err error) {
	dir, err := os.MkdirTemp("", "small")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	all = make([]footprint, len(smallest))
	for i, name := range smallest {
		size, err := compile(ctx, filepath.Join(dir, name), "./small/"+name)
		if err != nil {
			return nil, err
		}
		all[i] = footprint{start: math.MaxInt64, binary: float64(size) / 1e6}
	}

	running := make([]*exec.Cmd, len(smallest))
	for n := range starts {
		for i, name := range smallest {
			p, took, err := startSmall(filepath.Join(dir, name))
			if err != nil {
				return nil, err
			}

			defer p.Wait()
			defer p.Process.Kill()

			all[i].start, running[i] = min(all[i].start, took), p
			if n < starts-1 {
				err = errors.Join(p.Process.Signal(syscall.SIGTERM), p.Wait())
			}
			if err != nil {
				return nil, fmt.Errorf("end %s: %w", name, err)
			}
		}
	}

	time.Sleep(min(idle, 3*time.Second)) // what they do after the first job is not idle yet
	began := make([]time.Duration, len(smallest))
	for i, p := range running {
		all[i].rss = field(fmt.Sprintf("/proc/%d/status", p.Process.Pid), "VmRSS:") / 1000
		began[i] = ran([]int{p.Process.Pid})
	}

	time.Sleep(idle)
	for i, p := range running {
		all[i].idle = 100 * (ran([]int{p.Process.Pid}) - began[i]).Seconds() / max(idle, time.Second).Seconds()
	}

	return all, nil
}

// startSmall starts a program with a new directory, and waits for its first
// job, which prints a line.
func startSmall(binary string) (p *exec.Cmd, took time.Duration, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(binary), "db")
	if err != nil {
		return nil, 0, err
	}

	p = exec.Command(binary, dir)
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}

	began := time.Now()
	if err := p.Start(); err != nil {
		return nil, 0, err
	}

	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "hello world" {
	}
	if took = time.Since(began); lines.Text() != "hello world" {
		err = cmp.Or(lines.Err(), fmt.Errorf("%s did not run its job: %w", filepath.Base(binary), p.Wait()))
	}

	return p, took, err
}

// smallTable returns the figures as Markdown.
func smallTable(all []footprint) string {
	var text strings.Builder
	fmt.Fprintln(&text, "| | start to first job | idle memory (RSS) | processor time while idle, of one core | "+
		"stripped binary, more than SQLite |")
	fmt.Fprintln(&text, "|---|--:|--:|--:|--:|")
	for i, f := range all[1:] {
		fmt.Fprintf(&text, "| %s | %.0f ms | %.1f MB | %.2f %% | %.2f MB, + %.2f MB |\n",
			cmp.Or(titles[smallest[i+1]], smallest[i+1]), f.start.Seconds()*1000, f.rss, f.idle, f.binary, f.binary-all[0].binary)
	}
	return text.String()
}
