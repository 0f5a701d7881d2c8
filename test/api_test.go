package test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt")

// public lists the packages that other programs may import, and how many
// exported identifiers each may have. Fields of structs do not count.
var public = []struct {
	path string
	most int
}{{"jobs/command", 8}, {"jobs", 113}, {"runner", 57}, {"runner/admin", 81}, {"runner/commands", 3}, {"runner/postgres", 3},
	{"runner/runnertest", 14}, {"web", 10}}

// dbType matches a type of package db, which is not public.
var dbType = regexp.MustCompile(`\bdb\.`)

// storeTypes has the types of package db by name. The list of a public package
// shows an alias of such a type as if the package declared it.
var storeTypes = map[string]ast.Expr{}

const goldenAPI = "testdata/api.txt"

// TestPublicAPI compares the exported identifiers of the public packages with
// the file testdata/api.txt, which has a line for each of them. So a commit
// that changes the API must change this file. The flag -update rewrites the
// file.
func TestPublicAPI(t *testing.T) {
	for _, file := range parsePackage(t, "db") {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
				for _, spec := range d.Specs {
					storeTypes[spec.(*ast.TypeSpec).Name.Name] = spec.(*ast.TypeSpec).Type
				}
			}
		}
	}

	var got strings.Builder
	for _, p := range public {
		names, lines := exported(t, p.path)
		fmt.Fprintf(&got, "package %s: %d identifiers\n%s\n\n", p.path, names, strings.Join(lines, "\n"))
		if names > p.most {
			t.Errorf("package %s: got %d exported identifiers, want at most %d", p.path, names, p.most)
		}
		for _, line := range lines {
			if dbType.MatchString(line) {
				t.Errorf("package %s: got a type of db, which is not public, want none: %s", p.path, line)
			}
		}
	}
	if *update {
		if err := os.WriteFile(goldenAPI, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() == string(want) {
		return
	}
	gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for _, line := range gotLines {
		if !slices.Contains(wantLines, line) {
			t.Errorf("got an identifier that is not in the file: %s", line)
		}
	}
	for _, line := range wantLines {
		if !slices.Contains(gotLines, line) {
			t.Errorf("want an identifier that no longer exists: %s", line)
		}
	}
	t.Errorf("got another public API than in %s; to accept the change: go test ./test -run PublicAPI -update", goldenAPI)
}

// exported returns a sorted list with a line for each exported identifier of a
// package. It also returns how many of them are not fields of structs.
func exported(t *testing.T, path string) (names int, lines []string) {
	t.Helper()
	for _, file := range parsePackage(t, path) {
		for _, decl := range file.Decls {
			for _, line := range declLines(decl) {
				lines = append(lines, line)
				if !strings.HasPrefix(line, "field ") {
					names++
				}
			}
		}
	}
	slices.Sort(lines)
	return names, lines
}

// parsePackage returns the syntax trees of the files of a package. It leaves
// out files that are not for this operating system.
func parsePackage(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// declLines returns a line for each exported identifier of a declaration.
func declLines(decl ast.Decl) (lines []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() {
			return nil
		}
		receiver := ""
		if d.Recv != nil {
			of := source(d.Recv.List[0].Type)
			if !ast.IsExported(strings.TrimLeft(of, "*")) {
				return nil
			}
			receiver = "(" + of + ") "
		}
		name := d.Name.Name
		if d.Type.TypeParams != nil {
			name += "[" + fields(d.Type.TypeParams) + "]"
		}
		return []string{"func " + receiver + name +
			strings.TrimPrefix(source(&ast.FuncType{Params: d.Type.Params, Results: d.Type.Results}), "func")}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			lines = append(lines, specLines(d.Tok, spec)...)
		}
	}
	return lines
}

func specLines(tok token.Token, spec ast.Spec) (lines []string) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				lines = append(lines, strings.TrimSpace(fmt.Sprintf("%v %s %s", tok, name.Name, source(s.Type))))
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		if of, ok := s.Type.(*ast.SelectorExpr); ok && storeTypes[of.Sel.Name] != nil && source(of.X) == "db" {
			s = &ast.TypeSpec{Name: s.Name, Type: storeTypes[of.Sel.Name]}
		}
		name := s.Name.Name
		if s.TypeParams != nil {
			name += "[" + fields(s.TypeParams) + "]"
		}
		if s.Assign.IsValid() {
			name += " ="
		}
		structure, ok := s.Type.(*ast.StructType)
		if !ok {
			return []string{"type " + name + " " + source(s.Type)}
		}
		lines = []string{"type " + name + " struct"}
		for _, f := range structure.Fields.List {
			if f.Names == nil {
				lines = append(lines, "field "+s.Name.Name+" embeds "+source(f.Type))
			}
			for _, n := range f.Names {
				if n.IsExported() {
					lines = append(lines, "field "+s.Name.Name+"."+n.Name+" "+source(f.Type))
				}
			}
		}
	}
	return lines
}

func fields(list *ast.FieldList) string {
	return strings.TrimSuffix(strings.TrimPrefix(source(&ast.FuncType{Params: list}), "func("), ")")
}

// source returns an expression as Go source on one line.
func source(node ast.Expr) string {
	if node == nil {
		return ""
	}
	var b strings.Builder
	if err := printer.Fprint(&b, token.NewFileSet(), node); err != nil {
		panic(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
