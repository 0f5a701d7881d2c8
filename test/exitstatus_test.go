package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// statusRow is a row of the first table of docs/exit-status.md.
type statusRow struct{ status, commands string }

// statusRows returns the rows of the first table of docs/exit-status.md.
func statusRows(t *testing.T) (rows []statusRow) {
	table, _, _ := strings.Cut(readFile(t, "docs/exit-status.md"), "\n## ")
	for _, found := range regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$`).FindAllStringSubmatch(table, -1) {
		rows = append(rows, statusRow{found[1], found[2]})
	}
	if len(rows) < 20 {
		t.Fatalf("docs/exit-status.md: got %d rows, want at least 20", len(rows))
	}
	return rows
}

// covers reports whether a row describes this exit status of this command. A
// command is, for example, "limit set".
func (r statusRow) covers(status, command string) bool {
	parent, _, _ := strings.Cut(command, " ")
	return r.status == status && (strings.HasPrefix(r.commands, "all") || strings.Contains(r.commands, "`"+command) ||
		strings.Contains(r.commands, "`"+parent+"`"))
}

// TestExitStatusesAreDocumented compares the exit statuses in the source with
// the page docs/exit-status.md.
func TestExitStatusesAreDocumented(t *testing.T) {
	documented := map[int]bool{}
	for _, row := range statusRows(t) {
		if n, err := strconv.Atoi(row.status); err == nil {
			documented[n] = true
		}
	}
	used := map[int]bool{0: true}
	constants := map[string]int{}
	files := programFiles(t)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, value := range spec.Values {
					if number, ok := integer(value, nil); ok {
						constants[spec.Names[i].Name] = number
					}
				}
			}
			return true
		})
	}
	for _, file := range files {
		for _, value := range statusValues(file) {
			if number, ok := integer(value, constants); ok {
				used[number] = true
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(used)); !slices.Equal(got, want) {
		t.Errorf("docs/exit-status.md: got the statuses %v, want those of the program, %v", got, want)
	}
}

// TestExitStatusesOfHelpAreDocumented checks that docs/exit-status.md contains
// all exit statuses that the help of a command names.
func TestExitStatusesOfHelpAreDocumented(t *testing.T) {
	rows := statusRows(t)
	line := regexp.MustCompile(`(?m)^  (\d+(?:, \d+)*|128\+n) +\S`)
	checked := 0
	for _, section := range strings.Split(readFile(t, "contrib/man/runner.1"), "\n.SH \"RUNNER ")[1:] {
		name, text, _ := strings.Cut(section, "\"")
		name = strings.ToLower(name)
		for _, list := range strings.Split(text, "\nEXIT STATUS")[1:] {
			list, _, _ = strings.Cut(list, "\n.fi")
			for _, found := range line.FindAllStringSubmatch(list, -1) {
				for status := range strings.SplitSeq(found[1], ", ") {
					checked++
					if !slices.ContainsFunc(rows, func(r statusRow) bool { return r.covers(status, name) }) {
						t.Errorf("docs/exit-status.md: got no row for the status %s of %q, want one", status, name)
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("got %d exit statuses in the help, want at least 100", checked)
	}
}

// programFiles returns the source files of the program as syntax trees. It
// leaves out tests, and packages that only tests use.
func programFiles(t *testing.T) (files []*ast.File) {
	t.Helper()
	paths := globbed(t, "*.go")
	for _, dir := range []string{"db", "internal", "jobs", "runner", "web"} {
		paths = append(paths, sourceFiles(t, dir)...)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || regexp.MustCompile(`^test/testkit|^runner/runnertest`).
			MatchString(path) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// statusValues returns the expressions in a file that are exit statuses: the
// field Exit of ui.Error, the variable exit, the argument of ExitStatus, and
// the results of functions that return a status.
func statusValues(file *ast.File) (values []ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if source(n.Key) == "Exit" {
				values = append(values, n.Value)
			}
		case *ast.CallExpr:
			if name := source(n.Fun); strings.HasSuffix(name, "ExitStatus") && len(n.Args) == 1 || name == "startError" {
				values = append(values, n.Args[0])
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if name := source(to); len(n.Rhs) == len(n.Lhs) && (name == "exit" || strings.HasSuffix(name, ".Exit")) {
					values = append(values, n.Rhs[i])
				}
			}
		case *ast.FuncDecl:
			if n.Name.Name == "ExitStatus" {
				ast.Inspect(n, func(n ast.Node) bool {
					if result, ok := n.(*ast.ReturnStmt); ok && len(result.Results) > 0 {
						values = append(values, result.Results[0])
					}
					return true
				})
			}
		}
		return true
	})
	return values
}

// integer returns the value of a number or of a constant in the source.
func integer(value ast.Expr, constants map[string]int) (int, bool) {
	switch value := value.(type) {
	case *ast.BasicLit:
		number, err := strconv.Atoi(value.Value)
		return number, err == nil
	case *ast.Ident:
		number, ok := constants[value.Name]
		return number, ok
	case *ast.SelectorExpr:
		number, ok := constants[value.Sel.Name]
		return number, ok
	}
	return 0, false
}
