package test

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// variableName matches a text that may be the name of an environment variable.
var variableName = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*=?$`)

// ofLibraries lists environment variables that the libraries of runner read.
// The source of runner does not name them.
var ofLibraries = []string{"PGPASSWORD", "WATCHDOG_USEC"}

// TestEnvironmentVariablesAreDocumented compares the environment variables in
// the source with the page docs/environment.md.
func TestEnvironmentVariablesAreDocumented(t *testing.T) {
	page, manual := readFile(t, "docs/environment.md"), readFile(t, "contrib/man/runner.1")
	literal := map[string]bool{} // texts in the source that look like names of variables
	used := map[string]bool{}    // variables that the program reads or sets
	for _, file := range programFiles(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && variableName.MatchString(text) {
					name := strings.TrimSuffix(text, "=")
					literal[name] = true
					used[name] = used[name] || strings.HasPrefix(name, "RUNNER_")
				}
			case *ast.CallExpr:
				name := strings.ToLower(source(n.Fun))
				if !strings.HasSuffix(name, "getenv") && !strings.HasSuffix(name, "lookupenv") {
					return true
				}
				if argument, ok := n.Args[0].(*ast.BasicLit); ok {
					variable, _ := strconv.Unquote(argument.Value)
					used[variable] = true
				}
			}
			return true
		})
	}
	// the manual page names the variables that set options of the commands work
	// and serve
	for _, found := range regexp.MustCompile(`\$(RUNNER_[A-Z_]+)`).FindAllStringSubmatch(manual, -1) {
		used[found[1]] = true
	}
	delete(used, "GOGC") // belongs to the Go runtime
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if used[name] && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/environment.md: got no %s, want it, because the program uses it", name)
		}
	}
	if len(used) < 50 {
		t.Errorf("got %d variables of the program, want at least 50", len(used))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(page, -1) {
		for _, found := range regexp.MustCompile("`([A-Z][A-Z0-9_]*)`").FindAllStringSubmatch(row[1], -1) {
			if name := found[1]; !used[name] && !literal[name] && !slices.Contains(ofLibraries, name) {
				t.Errorf("docs/environment.md: got %s, which the program does not use", name)
			}
		}
	}
}

// TestTasksDoNotGetOptionsOfTheirWorker checks that a command does not get the
// environment variables that set the options of its worker.
func TestTasksDoNotGetOptionsOfTheirWorker(t *testing.T) {
	hidden := readFile(t, "runner/internal/exec/environ.go")
	manual := readFile(t, "contrib/man/runner.1")
	checked := 0
	for _, command := range []string{"WORK", "SERVE"} {
		_, section, _ := strings.Cut(manual, "\n.SH \"RUNNER "+command+"\"\n")
		section, _, _ = strings.Cut(section, "\n.SH ")
		for _, found := range regexp.MustCompile(`\$(RUNNER_[A-Z_]+)\n`).FindAllStringSubmatch(section, -1) {
			checked++
			if !strings.Contains(hidden, `"`+found[1]+`"`) {
				t.Errorf("runner/internal/exec/environ.go: got no %s in the list of hidden variables, want it", found[1])
			}
		}
	}
	if checked < 30 {
		t.Errorf("got %d options with variables in the manual page, want at least 30", checked)
	}
}
