package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// commandWords matches words that only users of the command line understand: a
// flag, a command to type, an exit status.
var commandWords = regexp.MustCompile(`(^|[^\w-])--[a-z]|\btry: |exit status 75|\brunner (backup|cancel|delete|` +
	`doctor|enqueue|fence|limit|list|logs|move|pause|resume|retry|` +
	`schedule|serve|show|status|wait|work)\b`)

// TestLibraryDoesNotMentionCommandLine checks that the texts in db, runner and
// jobs, and the errors in web, do not contain words of the command line. The
// command line itself adds such words, with package ui.
func TestLibraryDoesNotMentionCommandLine(t *testing.T) {
	for _, text := range []string{"--db PATH", "or insist: --unsafe-fs", "try: again", "exit status 75 means", "runner resume --deletion"} {
		if !commandWords.MatchString(text) {
			t.Errorf("got no match of the pattern in %q, want one", text)
		}
	}
	for _, dir := range []string{"db", "runner", "jobs", "web"} {
		for _, path := range sourceFiles(t, dir) {
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, literal := range literals(file, dir == "web") {
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				if found := commandWords.FindString(strings.Replace(text, "pg_dump --schema=", "", 1)); found != "" {
					t.Errorf("%v: got %q, a word of the command line, want none: %s", set.Position(literal.Pos()),
						strings.TrimSpace(found), text)
				}
			}
		}
	}
}

// sourceFiles returns the Go files in a folder and its subfolders, without
// tests.
func sourceFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "dbtest" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// literals returns the strings in a file, or only those in error messages.
func literals(file *ast.File, errorsOnly bool) (list []*ast.BasicLit) {
	collect := func(node ast.Node) {
		ast.Inspect(node, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				list = append(list, literal)
			}
			return true
		})
	}
	if !errorsOnly {
		collect(file)
		return list
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if n.Type != nil && source(n.Type) == "jobs.Error" {
				collect(n)
				return false
			}
		case *ast.CallExpr:
			if name := source(n.Fun); name == "errors.New" || name == "fmt.Errorf" {
				collect(n)
				return false
			}
		}
		return true
	})
	return list
}
