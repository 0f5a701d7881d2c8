//go:build unix

package test

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// packagePages lists the packages whose package comment contains a whole
// program and shows how to test it.
var packagePages = []string{"jobs", "runner", "runner/postgres", "runner/runnertest", "web"}

// TestProgramsOfPackageCommentsCompile compiles the programs in package
// comments. It does so in a module of their own that requires this module, as a
// reader would. Each of these comments must also show a test with package
// runnertest.
func TestProgramsOfPackageCommentsCompile(t *testing.T) {
	files := map[string]string{}
	for _, pkg := range packagePages {
		comment := packageComment(t, pkg)
		if !strings.Contains(comment, "runnertest.") {
			t.Errorf("%s: got a package comment without runnertest, want one that shows a test", pkg)
		}
		programs := programsOf(comment)
		if len(programs) == 0 {
			t.Errorf("%s: got no program in the package comment, want one", pkg)
		}
		for i, text := range programs {
			name := "main.go"
			if strings.Contains(text, "*testing.T") {
				name = "main_test.go"
			}
			files[fmt.Sprintf("%s%d/%s", strings.ReplaceAll(pkg, "/", "_"), i, name)] = text
		}
	}
	vetPrograms(t, files)
}

func TestProgramsInCommentAreFound(t *testing.T) {
	comment := "Text.\n\n\tf()\n\n\tpackage main\n\n\tfunc main() {\n\t\tf()\n\t}\n\nMore text.\n\n\tf()\n"
	got := programsOf(comment)
	if want := "package main\n\nfunc main() {\n\tf()\n}\n"; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// packageComment returns the package comment of a package.
func packageComment(t *testing.T, pkg string) (comment string) {
	t.Helper()
	names, err := filepath.Glob(pkg + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		comment += file.Doc.Text()
	}
	return comment
}

// programsOf returns the programs in a package comment. A program consists of
// the indented lines from "package main" to the next line that is not indented.
func programsOf(comment string) (programs []string) {
	var program strings.Builder
	end := func() {
		if program.Len() > 0 {
			programs = append(programs, strings.TrimRight(program.String(), "\n")+"\n")
		}
		program.Reset()
	}
	for line := range strings.Lines(comment) {
		code, indented := strings.CutPrefix(line, "\t")
		switch {
		case code == "package main\n" && indented:
			end()
			program.WriteString(code)
		case program.Len() > 0 && (indented || line == "\n"):
			program.WriteString(code)
		default:
			end()
		}
	}
	end()
	return programs
}
