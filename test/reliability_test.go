package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTestsNamedInDocsExist checks that all tests, scripts and mutants exist
// that docs/reliability.md and docs/dev/postgres-tests.md name.
func TestTestsNamedInDocsExist(t *testing.T) {
	proofsExist(t, "docs/reliability.md", 120)
	proofsExist(t, "docs/dev/postgres-tests.md", 20)
}

func proofsExist(t *testing.T, page string, least int) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	tests := namedTests(t)
	named := 0
	for _, found := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(text, -1) {
		if named++; !tests[string(found[1])] {
			t.Errorf("%s: got the test name %s, want an existing test", page, found[1])
		}
	}
	files := func(expression, dir, suffix string) {
		for _, found := range regexp.MustCompile(expression).FindAllSubmatch(text, -1) {
			for name := range strings.SplitSeq(string(found[1]), ", ") {
				named++
				if _, err := os.Stat(filepath.Join(dir, name+suffix)); err != nil {
					t.Error(err)
				}
			}
		}
	}
	files("`(\\w+\\.txtar)`", "testdata/script", "")
	files("`(\\w+/[\\w/]+\\.go)`", ".", "")
	files(`mutants? ([a-z]+(?:-[a-z]+)+(?:, [a-z]+(?:-[a-z]+)+)*)[;. |]`, "test/mutants", ".txt")
	if named < least {
		t.Errorf("%s: got %d names of tests, want at least %d", page, named, least)
	}
}

// namedTests returns the names of all tests, fuzz tests and examples, and the
// names of the cases in db/dbtest in quotes.
func namedTests(t *testing.T) map[string]bool {
	names := map[string]bool{}
	collect := func(source, expression string) {
		for _, found := range regexp.MustCompile(expression).FindAllStringSubmatch(source, -1) {
			names[found[1]] = true
		}
	}
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, "_test.go"):
			collect(readFile(t, path), `(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
		case strings.HasPrefix(filepath.ToSlash(path), "db/dbtest/suite_") && strings.HasSuffix(path, ".go"):
			collect(readFile(t, path), `(?m)^\t("[^"\n]+"):`)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
