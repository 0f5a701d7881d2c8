package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestErrorCodesAreDocumented checks that docs/embedding.md describes each
// error code in internal/errcode, and that a package uses the code.
func TestErrorCodesAreDocumented(t *testing.T) {
	page := readFile(t, "docs/embedding.md")
	var source strings.Builder
	for _, dir := range []string{"db", "runner", "web"} {
		for _, path := range sourceFiles(t, dir) {
			source.WriteString(readFile(t, path))
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "internal/errcode/errcode.go", nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		codes++
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		row := fmt.Sprintf("| `%s` | %s |", code, strings.TrimSpace(spec.Comment.Text()))
		if !strings.Contains(page, row) {
			t.Errorf("docs/embedding.md: got no row %q, want one", row)
		}
		if name := "errcode." + spec.Names[0].Name; !strings.Contains(source.String(), name) {
			t.Errorf("got no package that sets %s, want one", name)
		}
		return true
	})
	if codes < 30 {
		t.Errorf("got %d codes, want at least 30", codes)
	}
}
