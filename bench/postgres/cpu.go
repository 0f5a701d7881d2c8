package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// measure runs a crew. If the crew adds no tasks, measure also sets e.cpu to
// the processor time of the server and the workers per task.
func (e *env) measure(ctx context.Context, w crew) (time.Duration, error) {
	server, err := serverPID(ctx, e.address)
	if err != nil {
		return 0, err
	}

	before := treeTime(server) + treeTime(os.Getpid())
	took, err := w.work(ctx)
	if err == nil && w.feed == nil {
		e.cpu = []float64{float64((treeTime(server) + treeTime(os.Getpid()) - before).Microseconds()) / float64(w.n)}
	}
	return took, err
}

// serverPID returns the process id of the server, or 0 if the server is on
// another host.
func serverPID(ctx context.Context, address string) (pid int, err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, `SELECT CAST(split_part(pg_read_file('postmaster.pid'), E'\n', 1) AS bigint)`).Scan(&pid)
	return pid, err
}

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// treeTime returns the processor time of a process, of its running children and
// of its ended children.
func treeTime(pid int) (sum time.Duration) {
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil { // an error means that the process has ended
			continue
		}

		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // without fields 1 and 2: the id and the name
		number := func(i int) (n int) { n, _ = strconv.Atoi(fields[i-3]); return n }
		switch {
		case path == fmt.Sprintf("/proc/%d/stat", pid):
			sum += time.Duration(number(14)+number(15)+number(16)+number(17)) * tick
		case number(4) == pid:
			sum += time.Duration(number(14)+number(15)) * tick
		}
	}

	return sum
}
