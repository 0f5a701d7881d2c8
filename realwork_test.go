package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The script commands below belong to a test with real work: its tasks compute
// checksums of Go's own source files with sha256sum.

// sumDirs are directories of Go's source, and the priorities of the tasks for
// their files. The tasks with the higher priority are added last, but must run
// first.
var sumDirs = []struct {
	dir      string
	priority int
}{{"net", 3}, {"encoding", 8}}

// makeSumBatch implements the script command "sumbatch FILE". For each source
// file it writes a line to FILE, which the script passes to "enqueue --batch".
func makeSumBatch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sumbatch FILE")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	ts.Check(err)
	program, err := exec.LookPath("sha256sum")
	ts.Check(err)
	var batch strings.Builder
	n := 0
	for _, sums := range sumDirs {
		dir := filepath.Join(strings.TrimSpace(string(root)), "src", sums.dir)
		ts.Check(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			n++
			return json.NewEncoder(&batch).Encode(map[string]any{"args": []string{program, path}, "priority": sums.priority,
				"queue": "sums"})
		}))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(batch.String()), 0o600))
	ts.Logf("%d files", n)
}

// checkSums implements the script command "sumcheck BATCH LIST SHOW LOGS".
// BATCH is the file that the script command sumbatch has written. The other
// files contain the output of "list --json", "show --json" and "logs" for its
// tasks.
func checkSums(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: sumcheck BATCH LIST SHOW LOGS")
	}
	digests := map[int64]string{} // checksums that the tasks have printed, by task
	for line := range strings.Lines(ts.ReadFile(args[3])) {
		var id int64
		var digest, path string
		if _, err := fmt.Sscanf(line, "[%d] %s %s\n", &id, &digest, &path); err != nil || digests[id] != "" {
			ts.Fatalf("logs: got %q (%v), want one line for each task with id, digest and path", line, err)
		}
		digests[id] = digest
	}
	listed := readRecords[sumTask](ts, args[1])
	shown := readRecords[sumTask](ts, args[2])
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); n == 0 || len(listed) != n || len(shown) != n || len(digests) != n {
		ts.Fatalf("got %d in the batch, %d listed, %d shown, %d digests; want the same numbers", n, len(listed), len(shown), len(digests))
	}
	seen := map[string]bool{}
	for _, t := range shown {
		if t.State != "completed" || t.Attempt != 1 || t.Losses != 0 || len(t.History) != 1 || t.History[0].Attempt != 1 ||
			t.History[0].State != "completed" {
			ts.Fatalf("task %d: got %s, attempt %d, %d losses; want it completed exactly once", t.ID, t.State, t.Attempt, t.Losses)
		}
		path := t.Args[1]
		data, err := os.ReadFile(path)
		ts.Check(err)
		if want := fmt.Sprintf("%x", sha256.Sum256(data)); digests[t.ID] != want || seen[path] {
			ts.Fatalf("task %d, %s: got digest %s, want %s for one task", t.ID, path, digests[t.ID], want)
		}
		seen[path] = true
	}
	byWorker := map[string][]sumTask{}
	for _, t := range listed {
		byWorker[t.WorkerID] = append(byWorker[t.WorkerID], t)
	}
	for worker, tasks := range byWorker {
		ts.Logf("worker %s ran %d tasks", worker, len(tasks))
		urgency := func(a, b sumTask) int { return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID)) }
		slices.SortFunc(tasks, func(a, b sumTask) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), urgency(a, b)) })
		if !slices.IsSortedFunc(tasks, urgency) {
			ts.Fatalf("worker %s: got the starts %+v, want them by priority, then id", worker, tasks)
		}
	}
}

// sumTask has those keys of a task's record that checkSums reads.
type sumTask struct {
	ID        int64
	Args      []string
	State     string
	Priority  int
	Attempt   int
	Losses    int
	WorkerID  string    `json:"worker_id"`
	StartedAt time.Time `json:"started_at"`
	History   []struct {
		Attempt int
		State   string
	}
}

// readRecords reads records from a file with one JSON object per line.
func readRecords[T any](ts *testscript.TestScript, name string) (list []T) {
	for line := range strings.Lines(ts.ReadFile(name)) {
		var record T
		ts.Check(json.Unmarshal([]byte(line), &record))
		list = append(list, record)
	}
	return list
}
