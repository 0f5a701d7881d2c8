package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// errorKind matches the name of a kind of error, such as ErrNotFound, in a
// comment. If the words "the cause" are before the name, it matches them, too.
// The test skips a name after these words, because it is the cause of a context
// and not an error of the call.
var errorKind = regexp.MustCompile(`(the cause )?\b(?:jobs\.)?(Err[A-Z]\w*)`)

const kindsHeader = "| call | kinds of errors |\n|---|---|\n"

// TestErrorKindsAreDocumented checks a table in docs/embedding.md. The table
// lists for each call the kinds of errors that the call may return, and must
// agree with the comments of packages runner and admin. A test of package
// runner, TestCallsReturnTheirKindsOfErrors, compares the table with what the
// calls do.
func TestErrorKindsAreDocumented(t *testing.T) {
	var files []string
	for _, pattern := range []string{"runner/*.go", "runner/admin/*.go"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	rows := map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Name.IsExported() && returnsError(f) {
				kinds := map[string]bool{}
				for _, match := range errorKind.FindAllStringSubmatch(strings.ReplaceAll(f.Doc.Text(), "\n", " "), -1) {
					if match[1] == "" {
						kinds["`"+match[2]+"`"] = true
					}
				}
				if len(kinds) > 0 {
					name := f.Name.Name
					if file.Name.Name == "admin" {
						name = "admin." + name
					}
					rows[name] = fmt.Sprintf("| `%s` | %s |\n", name, strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
				}
			}
		}
	}
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		table.WriteString(rows[name])
	}
	page := readFile(t, "docs/embedding.md")
	above, rest, found := strings.Cut(page, kindsHeader)
	if !found {
		t.Fatalf("docs/embedding.md: got no table with the header %q, want it", kindsHeader)
	}
	_, below, _ := strings.Cut(rest, "\n\n")
	if strings.HasPrefix(rest, "\n") { // the table has no rows
		below = rest[1:]
	}
	written := above + kindsHeader + table.String() + "\n" + below
	if os.Getenv("UPDATE_DOCS") != "" {
		writeFile(t, "docs/embedding.md", written)
	} else if written != page {
		t.Errorf("docs/embedding.md: got another table of kinds of errors than the doc comments of package runner; to write it: make docs")
	}
}

// returnsError reports whether a function returns an error or iterates over
// errors. Of the methods it considers only those of Runner.
func returnsError(f *ast.FuncDecl) bool {
	if f.Recv != nil {
		of, ok := f.Recv.List[0].Type.(*ast.StarExpr)
		if !ok || fmt.Sprint(of.X) != "Runner" {
			return false
		}
	}
	if f.Type.Results == nil {
		return false
	}
	switch last := f.Type.Results.List[len(f.Type.Results.List)-1].Type.(type) {
	case *ast.Ident:
		return last.Name == "error"
	case *ast.IndexListExpr: // iter.Seq2[jobs.Task, error]
		return fmt.Sprint(last.Indices[len(last.Indices)-1]) == "error"
	}
	return false
}
