package mutants

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mutant is a version of runner with a deliberate defect. It shows whether the
// tests find that defect. The command go build -overlay builds it, so the
// source files do not change. A file in mutants names the defect, the test that
// must find it, the invariants that a selftest may find violated, and the texts
// to replace.
type mutant struct {
	name, defect string
	invariants   []string          // invariants that a selftest finds violated, if the timing permits it
	test         []string          // arguments of go test for a test that always finds the defect
	files        map[string]string // mutated source by file name
}

const root = "../.."

func mutants(t *testing.T) (list []mutant) {
	t.Helper()
	names, err := filepath.Glob("*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("got mutants %v, error %v; want some files", names, err)
	}
	for _, name := range names {
		list = append(list, readMutant(t, name))
	}
	return list
}

func readMutant(t *testing.T, name string) mutant {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n-- ")
	m := mutant{name: strings.TrimSuffix(filepath.Base(name), ".txt"), files: map[string]string{}}
	lines := strings.Split(head, "\nfound by: ")
	m.defect = lines[0]
	for _, by := range lines[1:] {
		if words := strings.Fields(by); words[0] == "go" {
			m.test = words[2:]
		} else {
			m.invariants = words
		}
	}
	if m.test == nil {
		t.Fatalf("%s: got no line \"found by: go test\", want one", name)
	}
	for section := range strings.SplitSeq(rest, "\n-- ") {
		file, edits, _ := strings.Cut(section, " --\n")
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		m.files[file] = mutate(t, m.name, string(source), edits)
	}
	return m
}

// mutate replaces the text between <<<< and ==== by the text between ==== and
// >>>>.
func mutate(t *testing.T, name, source, edits string) string {
	t.Helper()
	for edit := range strings.SplitSeq(strings.TrimSpace(edits)+"\n", ">>>>\n") {
		if edit == "" {
			continue
		}
		before, after, ok := strings.Cut(strings.TrimPrefix(edit, "<<<<\n"), "====\n")
		if !ok || strings.Count(source, before) != 1 {
			t.Errorf("%s.txt: got %d occurrences of the text to replace, want 1:\n%s", name, strings.Count(source, before), before)
		}
		source = strings.Replace(source, before, after, 1)
	}
	return source
}

// TestMutantsFitSource checks that each mutant applies to the current source.
// The command make mutants builds the mutants and runs the tests.
func TestMutantsFitSource(t *testing.T) {
	for _, m := range mutants(t) {
		for file := range m.files {
			if strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s.txt changes the test %s, want changes of program files only", m.name, file)
			}
		}
		run := slices.Index(m.test, "-run")
		if run < 0 {
			t.Errorf("%s.txt: got go %v, want go test -run with the name of a test", m.name, m.test)
			continue
		}
		dirs := m.test[run+2:]
		for pattern := range strings.SplitSeq(m.test[run+1], "|") {
			name, _, _ := strings.Cut(strings.TrimSuffix(pattern, "$"), "/")
			name = strings.TrimSuffix(name, "$")
			if !slices.ContainsFunc(dirs, func(dir string) bool { return hasTest(t, dir, name) }) {
				t.Errorf("%s.txt: got no test %s in %v, want one", m.name, pattern, dirs)
			}
		}
	}
}

// hasTest reports whether a directory has a test whose name contains the given
// text.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	test := regexp.MustCompile(`(?m)^func Test\w*` + strings.TrimPrefix(name, "Test"))
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if test.Match(source) {
			return true
		}
	}
	return false
}
