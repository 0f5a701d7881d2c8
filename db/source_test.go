package db

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources calls a function for each Go file of the module, except tests. It
// skips directories with a go.mod of their own.
func sources(t *testing.T, look func(name string, file *ast.File, position func(ast.Node) token.Position)) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && name != ".." || strings.HasPrefix(entry.Name(), ".") &&
				name != ".." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			return err
		}
		seen++
		name, _ = filepath.Rel("..", name)
		look(filepath.ToSlash(name), file, func(n ast.Node) token.Position { return set.Position(n.Pos()) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 40 {
		t.Fatalf("got %d files, want at least 40", seen)
	}
}

func TestOnlyPackageDbHasSQL(t *testing.T) {
	// These files contain SQL, but do not run it on the tables of runner: they
	// show statements and rights to the administrator of a server, or recognize
	// a statement of package db.
	showSQL := []string{"internal/ui/server.go", "internal/ops/doctor_server.go", "runner/runnertest/driver.go"}
	verb := regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE TABLE|PRAGMA)\s`)
	sources(t, func(name string, file *ast.File, position func(ast.Node) token.Position) {
		// test/selftest checks package db from outside, so it contains SQL of
		// its own
		if strings.HasPrefix(name, "db/") || strings.HasPrefix(name, "test/selftest/") ||
			strings.HasPrefix(name, "test/testkit/") || slices.Contains(showSQL, name) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && verb.MatchString(unquote(literal)) {
				t.Errorf("%v: got an SQL statement, want SQL only in package db: %.60s", position(n), unquote(literal))
			}
			return true
		})
	})
}

func TestClockIsReadInOnePlace(t *testing.T) {
	clocks := []string{"Now", "Since", "Until"}
	// The code in these files measures durations only. It never stores the
	// current time.
	mayWait := []string{"db/commit.go", "db/internal/sqlite/open.go", "db/internal/sqlite/watch.go", "db/internal/sqlite/system_linux.go",
		"db/internal/sqlite/backup.go",  // this file compares the age of a file that a killed backup left
		"db/internal/postgres/skew.go",  // this file compares the clock of this host with the clock of the server
		"db/internal/engine/querier.go"} // before an upgrade, this file checks once whether a worker of an older program is alive
	sources(t, func(name string, file *ast.File, position func(ast.Node) token.Position) {
		dir, _, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{"jobs", "runner", "db"}, dir) || strings.HasPrefix(name, "db/dbtest/") ||
			strings.HasPrefix(name, "runner/runnertest/") || slices.Contains(mayWait, name) {
			return
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && dir == "runner" && f.Recv == nil && f.Name.Name == "now" {
				continue
			}
			ast.Inspect(declaration, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clocks, selector.Sel.Name) {
					t.Errorf("%v: got a call of time.%s, want the time as a parameter", position(n), selector.Sel.Name)
				}
				return true
			})
		}
	})
}

func unquote(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}
