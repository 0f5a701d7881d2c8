package runner_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// pids lists the living processes that have text in the file of this name in /proc.
func pids(name, text string) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/" + name)
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && bytes.Contains(content, []byte(text)) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			if alive(pid) {
				found = append(found, pid)
			}
		}
	}
	return found
}

func alive(pid int) bool {
	state := stateOf(pid)
	return state != 0 && state != 'Z' && state != 'X'
}

// stateOf returns the state letter of a process as in ps, or 0 if the process does not exist.
func stateOf(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return stat[bytes.LastIndexByte(stat, ')')+2]
}

// parentOf returns the parent of a process, or 0 if the process has ended.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	field := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // the fields from the state on, then the parent
	parent, _ := strconv.Atoi(field[1])
	return parent
}

func commandsOf(worker string) []int { return pids("environ", "RUNNER_WORKER_ID="+worker) }

// guardianOf returns the only guardian of a worker.
func guardianOf(t *testing.T, worker string) int {
	t.Helper()
	found := guardiansOf(worker)
	if len(found) != 1 {
		t.Fatalf("got guardians %v, want one", found)
	}
	return found[0]
}

func guardiansOf(worker string) []int { return pids("cmdline", "runner-guardian\x00"+worker) }

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(pid, err)
	}
}

// freeze stops a process and waits until none of its threads runs, because the threads receive the signal some time later.
func freeze(t *testing.T, pid int) {
	t.Helper()
	signal(t, pid, syscall.SIGSTOP)
	testkit.Eventually(t, "stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return err == nil && !slices.ContainsFunc(threads, func(name string) bool {
			stat, err := os.ReadFile(name)
			return err == nil && stat[bytes.LastIndexByte(stat, ')')+2] != 'T'
		})
	})
}

// halt stops a worker outside of a transaction. If the worker stopped inside one, no other process could write.
func halt(t *testing.T, r *runner.Runner, pid int) {
	t.Helper()
	other, err := sql.Open("sqlite", "file:"+r.Path()+"?_txlock=immediate&_pragma=busy_timeout(200)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for range 20 {
		freeze(t, pid)
		if tx, err := other.BeginTx(t.Context(), nil); err == nil {
			_ = tx.Rollback()
			return
		}
		signal(t, pid, syscall.SIGCONT)
	}
	t.Fatal("it writes whenever it is stopped")
}

// family is a command that leaves processes behind in every way. Each process adds its pid to a file. Then the command continues.
func family(dir string) (spec jobs.Spec, file string) {
	file = filepath.Join(dir, "pids")
	script := `note='echo $$ >>"$0"; exec sleep 300'
sh -c "$note" "$0" &
nohup sh -c "$note" "$0" >/dev/null 2>&1 &
setsid sh -c "$note" "$0" &
setsid -f sh -c "$note" "$0"
(setsid sh -c 'sh -c "$1" "$0" &' "$0" "$note" &)
env -i PATH="$PATH" setsid -f sh -c "$note" "$0"
exec sh -c "$note" "$0"`
	return jobs.Command{Argv: []string{"sh", "-c", script, file}}.With(), file
}

const familySize = 7

func familyOf(file string) (members []int) {
	text, _ := os.ReadFile(file)
	for _, field := range strings.Fields(string(text)) {
		pid, _ := strconv.Atoi(field)
		members = append(members, pid)
	}
	return members
}

func living(members []int) (n int) {
	for _, pid := range members {
		if alive(pid) {
			n++
		}
	}
	return n
}

// runningFamily enqueues a family and starts a worker for it in another process.
func runningFamily(t *testing.T, r *runner.Runner, lease time.Duration) (task jobs.Task, worker *os.Process, members []int) {
	t.Helper()
	spec, file := family(t.TempDir())
	task = enqueue(t, r, spec)
	worker = startWorker(t, r, 2, lease)
	testkit.Eventually(t, "the family", func() bool { return len(familyOf(file)) == familySize })
	members = familyOf(file)
	if n := living(members); n != familySize {
		t.Fatal(n, "of them live")
	}
	return get(t, r, task.ID), worker, members
}
