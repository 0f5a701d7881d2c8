package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// These limits apply to each Go file. A tab counts as four columns.
const (
	maxFileLines     = 400
	maxFunctionLines = 80
	maxColumns       = 140
	maxProse         = 80 // columns of a comment
)

// TestGoFilesAreShort checks the length of all Go files, functions and lines in
// all modules of the repository, also in tests. It does not check other kinds
// of files, such as templates and scripts.
func TestGoFilesAreShort(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (entry.Name() == "node_modules" || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		files++
		found, err := tooLong(path, readFile(t, path))
		for _, text := range found {
			t.Error(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("got %d Go files in the repository, want at least 500", files)
	}
}

func TestLongFilesFunctionsAndLinesAreFound(t *testing.T) {
	text := "package p\n\nfunc f() {\n" + strings.Repeat("\n", 80) + "}\n\n" +
		"//\t" + strings.Repeat("ä", 135) + "\n// " + strings.Repeat("ä", 78) + "\n" + strings.Repeat("\n", 319)
	found, err := tooLong("p.go", text)
	got := strings.Join(found, "\n")
	want := "p.go: got 406 lines, want at most 400\np.go:86: got 141 columns, want at most 140\n" +
		"p.go:87: got 81 columns, want at most 80\np.go:3: got 82 lines in f, want at most 80"
	if err != nil || got != want {
		t.Errorf("got error %v and this text:\n%s\nwant\n%s", err, got, want)
	}
}

// prose matches a line of a comment that is not code, a list or a directive.
var prose = regexp.MustCompile(`^\s*// \S`)

// tooLong returns a message for each part of a Go file that exceeds its limit.
func tooLong(path, text string) (found []string, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > maxFileLines {
		found = append(found, fmt.Sprintf("%s: got %d lines, want at most %d", path, len(lines), maxFileLines))
	}
	for i, line := range lines {
		columns, limit := utf8.RuneCountInString(line)+3*strings.Count(line, "\t"), maxColumns
		if prose.MatchString(line) && !strings.HasSuffix(path, "example_test.go") { // an example's output is no prose
			limit = maxProse
		}
		if columns > limit {
			found = append(found, fmt.Sprintf("%s:%d: got %d columns, want at most %d", path, i+1, columns, limit))
		}
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range file.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first := set.Position(f.Pos()).Line
		if n := set.Position(f.End()).Line - first + 1; n > maxFunctionLines {
			found = append(found, fmt.Sprintf("%s:%d: got %d lines in %s, want at most %d", path, first, n, f.Name.Name, maxFunctionLines))
		}
	}
	return found, nil
}
