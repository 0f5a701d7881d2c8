package test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// lineCount matches a text in the docs that says how many lines files or packages have, such as "`a.go` and `b.go` (210 lines)".
var lineCount = regexp.MustCompile("((?:`[a-z][^` ]*/[^` ]*`(?:, |,?\\sand\\s|\\s))+)\\((\\d+)\\slines\\)")

// TestLineCountsInTheDocs checks the numbers of lines in docs/dependencies.md. Lines of tests do not count. A number may be wrong by a
// tenth, so that small changes of the code do not require a change of the page.
func TestLineCountsInTheDocs(t *testing.T) {
	found := lineCount.FindAllStringSubmatch(readFile(t, "docs/dependencies.md"), -1)
	if len(found) < 8 {
		t.Errorf("got %d numbers of lines, want at least 8", len(found))
	}
	for _, match := range found {
		lines := 0
		for _, path := range strings.Fields(strings.NewReplacer("`", " ", ",", " ", " and ", " ").Replace(match[1])) {
			files := []string{path}
			if !strings.HasSuffix(path, ".go") {
				files = globbed(t, filepath.Join(path, "*.go"))
			}
			for _, file := range files {
				if !strings.HasSuffix(file, "_test.go") {
					lines += strings.Count(readFile(t, file), "\n")
				}
			}
		}
		documented, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		if difference := documented - lines; max(difference, -difference)*10 > lines {
			t.Errorf("docs/dependencies.md: got %d lines for %s, want %d", documented, strings.TrimSpace(match[1]), lines)
		}
	}
}
