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

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// pids returns the ids of the living processes whose file /proc/PID/name
// contains the text.
func pids(name, text string) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/" + name)
	for _, file := range files {
		content, err := os.ReadFile(file)
		for range 1000 { // in the middle of an execve a process shows nothing
			if _, noProgram := os.Readlink(filepath.Dir(file) + "/exe"); err != nil || len(content) > 0 || noProgram != nil {
				break
			}
			content, err = os.ReadFile(file)
		}
		if err == nil && bytes.Contains(content, []byte(text)) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			if alive(pid) {
				found = append(found, pid)
			}
		}
	}
	return found
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	state := stateOf(pid)
	return state != 0 && state != 'Z' && state != 'X'
}

// stateOf returns the state letter of a process as in ps, or 0 if the process
// does not exist.
func stateOf(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return stat[bytes.LastIndexByte(stat, ')')+2]
}

// parentOf returns the id of the parent of a process, or 0 if the process has
// ended.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// after the name in parentheses, the first field is the state and the
	// second field is the parent
	field := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	parent, _ := strconv.Atoi(field[1])
	return parent
}

// commandsOf returns the ids of the processes of a worker's commands.
func commandsOf(worker string) []int { return pids("environ", "RUNNER_WORKER_ID="+worker) }

// guardianOf returns the process id of the only guardian of a worker.
func guardianOf(t *testing.T, worker string) int {
	t.Helper()
	found := guardiansOf(worker)
	if len(found) != 1 {
		t.Fatalf("got guardians %v, want one", found)
	}
	return found[0]
}

// guardiansOf returns the process ids of the guardians of a worker.
func guardiansOf(worker string) []int { return pids("cmdline", "runner-guardian\x00"+worker) }

func signal(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	testkit.NoError(t, syscall.Kill(pid, s))
}

// freeze stops a process with SIGSTOP. It waits until all threads of the
// process have stopped, which happens some time after the signal.
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

// stopOutsideTransaction stops a worker with SIGSTOP while the worker has no
// open transaction. A worker that stops in a transaction keeps the write lock,
// so no other process could write.
func stopOutsideTransaction(t *testing.T, r *runner.Runner, pid int) {
	t.Helper()
	other, err := sql.Open("sqlite", "file:"+admin.Path(r)+"?_txlock=immediate&_pragma=busy_timeout(200)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	testkit.Eventually(t, "a stop outside of a transaction", func() bool {
		freeze(t, pid)
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			signal(t, pid, syscall.SIGCONT)
			return false
		}
		_ = tx.Rollback()
		return true
	})
}

// processTree returns a command that starts one process for each way to escape
// from a process group. It also returns the path of a file to which each
// process adds its pid. The command itself keeps running, too. Without a cgroup
// nothing finds a process without an environment after its guardian's death, so
// then all of them keep theirs.
func processTree(dir string) (spec jobs.Spec, file string) {
	file = filepath.Join(dir, "pids")
	script := `note='echo $$ >>"$0"; exec sleep 300'
bare="env -i PATH=$PATH"
grep -q '^0::.*/runner-' /proc/self/cgroup || bare=
sh -c "$note" "$0" &
nohup sh -c "$note" "$0" >/dev/null 2>&1 &
setsid sh -c "$note" "$0" &
setsid -f sh -c "$note" "$0"
(setsid sh -c 'sh -c "$1" "$0" &' "$0" "$note" &)
$bare setsid -f sh -c "$note" "$0"
exec sh -c "$note" "$0"`
	return jobs.Command(command.Command{Argv: []string{"sh", "-c", script, file}}), file
}

// treeSize is the number of processes that the command of processTree runs.
const treeSize = 7

// pidsIn returns the pids in a file.
func pidsIn(file string) (pids []int) {
	text, _ := os.ReadFile(file)
	for _, field := range strings.Fields(string(text)) {
		pid, _ := strconv.Atoi(field)
		pids = append(pids, pid)
	}
	return pids
}

// living counts the processes that are alive.
func living(pids []int) (n int) {
	for _, pid := range pids {
		if alive(pid) {
			n++
		}
	}
	return n
}

// startProcessTree enqueues the command of processTree and starts a worker for
// it in another process.
func startProcessTree(t *testing.T, r *runner.Runner, lease time.Duration) (task jobs.Task, worker *os.Process, members []int) {
	t.Helper()
	spec, file := processTree(t.TempDir())
	task = runnerkit.Enqueue(t, r, spec)
	worker = startWorker(t, r, 2, lease)
	testkit.Eventually(t, "the process tree", func() bool { return len(pidsIn(file)) == treeSize })
	members = pidsIn(file)
	testkit.Equal(t, "living processes", living(members), treeSize)
	return runnerkit.Get(t, r, task.ID), worker, members
}
