//go:build mutants && linux

package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/test/selftest/harness"
)

// rounds is the number of selftests that look for the defect of a mutant. If no
// selftest finds the defect, the test that the mutant names runs. Several
// rounds help, because the timing decides which faults hit which processes.
const (
	rounds   = 3
	roundFor = "8s"
)

// TestMutants builds each mutant and looks for its defect. The test fails if
// neither a selftest nor the test that the mutant names finds the defect.
func TestMutants(t *testing.T) {
	becomeSubreaper(t)
	runner := filepath.Join(t.TempDir(), "runner")
	build(t, runner, ".")
	for _, m := range mutants(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			dir := t.TempDir()
			overlay := m.overlay(t, dir)
			var by string
			if m.invariants != nil {
				by = m.violates(t, runner, overlay, dir)
			}
			if by == "" { // a short selftest may miss the defect, but the test that the mutant names always finds it
				by = m.failsTest(t, overlay)
			}
			if by == "" {
				t.Errorf("got no test or selftest that found the defect, want one: %s", m.defect)
			} else {
				fmt.Printf("found  %-30s by %-60s %5.1fs\n", m.name, by, time.Since(began).Seconds())
			}
		})
	}
}

// becomeSubreaper makes this process the parent of guardians whose worker has
// died. It kills these guardians at the end of the test. Some mutants leave
// guardians that never end.
func becomeSubreaper(t *testing.T) {
	t.Helper()
	const setChildSubreaper = 36
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() {
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		for _, list := range lists {
			children, _ := os.ReadFile(list) // a thread that has ended has no children
			for field := range strings.FieldsSeq(string(children)) {
				name, _ := os.ReadFile("/proc/" + field + "/comm")
				if pid, err := strconv.Atoi(field); err == nil && string(name) == "guardian\n" {
					t.Log("a mutant left guardian", pid)
					_ = syscall.Kill(pid, syscall.SIGKILL)
					_, _ = syscall.Wait4(pid, nil, 0, nil)
				}
			}
		}
	})
}

// overlay writes the mutated files and the overlay file for go build. It
// returns the name of the overlay file.
func (m mutant) overlay(t *testing.T, dir string) string {
	replace := map[string]string{}
	for file, text := range m.files {
		from, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[from] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// failsTest runs the test that the mutant names, until its first failure. It
// returns the names of failed tests, or an empty text if all passed. A compile
// error is fatal. The flags -vet and -ldflags only save time: without go vet
// and the symbols for a debugger, the build is faster.
func (m mutant) failsTest(t *testing.T, overlay string) string {
	c := exec.Command("go", append([]string{"test", "-overlay", overlay, "-failfast", "-vet=off", "-ldflags=-s -w"}, m.test...)...)
	c.Dir = root
	out, err := c.CombinedOutput()
	if err == nil {
		return ""
	}
	var failed []string
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			failed = append(failed, strings.Fields(name)[0])
		}
	}
	// a timeout counts as a failed test: the test waited for an event that
	// never happens in this mutant
	if failed == nil && strings.Contains(string(out), "panic: test timed out") {
		failed = []string{"a test timed out"}
	}
	if failed == nil {
		t.Fatalf("go test: got error %v without a failed test, want a failed test\n%s", err, out)
	}
	return strings.Join(failed, " ")
}

func build(t *testing.T, program, path string, flags ...string) {
	t.Helper()
	c := exec.Command("go", append(append([]string{"build"}, flags...), "-ldflags=-s -w", "-o", program, path)...)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("build %s: got error %v, want none\n%s", path, err, out)
	}
}

// violates runs selftests of the mutant until one violates an expected
// invariant, and returns the violated invariants. The mutant is in the program
// of the selftest, which has the workers, clients and pages. The commands that
// the selftest runs beside them are those of runner.
func (m mutant) violates(t *testing.T, runner, overlay, dir string) string {
	program := filepath.Join(dir, "selftest")
	build(t, program, "./test/selftest", "-overlay", overlay)
	for seed := 1; seed <= rounds; seed++ {
		c := exec.Command(program, "-runner", runner, "-json", "-for", roundFor, "-seed", fmt.Sprint(seed), "-dir", dir)
		var stderr strings.Builder
		c.Stderr = &stderr
		out, _ := c.Output() // a selftest with violations exits with status 1
		var report harness.Report
		if err := json.Unmarshal(out, &report); err != nil {
			t.Fatalf("report of the selftest: got error %v, want none: %s %s", err, out, stderr.String())
		}
		broken := report.Broken()
		for _, i := range broken { // log one violation of each invariant, also of invariants that the mutant does not name
			t.Log(report.Violations[slices.IndexFunc(report.Violations, func(v harness.Violation) bool { return v.Invariant == i })])
		}
		if slices.ContainsFunc(m.invariants, func(i string) bool { return slices.Contains(broken, i) }) {
			return fmt.Sprintf("%s, round %d", strings.Join(broken, " "), seed)
		}
	}
	return ""
}
