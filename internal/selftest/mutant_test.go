package selftest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is the product with a bug that was put into it, to see whether the harness finds it. It is built by go build -overlay, so
// product files hold nothing of it. A file of mutants says what breaks, who must find it (a named test, and the invariants of a selftest if
// that can meet it), and which text of which file becomes which.
type mutant struct {
	name, breaks string
	invariants   []string          // a selftest breaks one of these, if chance lets it
	test         []string          // the arguments of go test with which it fails, always
	files        map[string]string // as they are when mutated
}

const root = "../.."

func mutants(t *testing.T) (list []mutant) {
	t.Helper()
	names, err := filepath.Glob("mutants/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
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
	m.breaks = lines[0]
	for _, by := range lines[1:] {
		if words := strings.Fields(by); words[0] == "go" {
			m.test = words[2:]
		} else {
			m.invariants = words
		}
	}
	if m.test == nil {
		t.Fatalf("%s names no test that finds it always", name)
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

// mutate replaces the text between <<<< and ==== by that between ==== and >>>>.
func mutate(t *testing.T, name, source, edits string) string {
	t.Helper()
	for edit := range strings.SplitSeq(strings.TrimSpace(edits)+"\n", ">>>>\n") {
		if edit == "" {
			continue
		}
		before, after, ok := strings.Cut(strings.TrimPrefix(edit, "<<<<\n"), "====\n")
		if !ok || strings.Count(source, before) != 1 {
			t.Errorf("mutant %s changes a text that is there %d times: bring mutants/%s.txt up to date\n%s", name, strings.Count(source, before), name, before)
		}
		source = strings.Replace(source, before, after, 1)
	}
	return source
}

// TestMutantsFitTheSource notices a change of the product that a mutant has to follow. make mutants builds and hunts them.
func TestMutantsFitTheSource(t *testing.T) {
	for _, m := range mutants(t) {
		for file := range m.files {
			if strings.HasSuffix(file, "_test.go") {
				t.Errorf("mutant %s changes a test", m.name)
			}
		}
	}
}
