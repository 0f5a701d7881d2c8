package statementtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sqlVerb matches the beginning of a statement that has a plan, and planless
// the beginning of one that never has: pragmas, transactions and savepoints.
var (
	sqlVerb  = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|REPLACE)\s`)
	planless = regexp.MustCompile(`^(PRAGMA|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b`)
)

// Complete checks that the plans cover all statements of the package in the
// working directory. It reports an error in three cases: a declared statement
// has no plan, a plan has no declared statement, or the text of a statement
// stands outside of a declaration. others lists declarations that need no plan:
// templates that several statements share, and statements for servers.
func (p Plans) Complete(t *testing.T, others ...string) {
	t.Helper()
	known := maps.Clone(p)
	for _, name := range others {
		known[name] = Plan{}
	}

	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		first := p.declared(file, others, func(statement string) {
			if _, ok := known[statement]; !ok {
				t.Errorf("%s: the plan of %s is not checked", name, statement)
			}
			delete(known, statement)
		})
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if ok && !first[n] && sqlVerb.MatchString(unquote(literal)) && !p.has(unquote(literal)) {
				t.Errorf("%s: a statement that is no const: %.60s", name, unquote(literal))
			}
			return true
		})
	}

	for name := range known {
		if !strings.Contains(name, " ") {
			t.Errorf("there is no statement %s", name)
		}
	}
}

// declared finds the statements that a file declares, and calls found with the
// name of each. It returns the string literals with which the templates of
// these statements begin. So Complete knows that these literals belong to a
// declaration.
func (p Plans) declared(file *ast.File, others []string, found func(name string)) map[ast.Node]bool {
	first := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}

		for i, value := range spec.Values {
			template := templateIn(value)
			switch left := leftmost(template).(type) {
			case *ast.Ident: // the template begins with the text of another statement
				if _, ok := p[left.Name]; !ok && template == value && !slices.Contains(others, left.Name) {
					continue
				}
			case *ast.BasicLit:
				text := unquote(left)
				if !sqlVerb.MatchString(text) && (template == value || planless.MatchString(text)) {
					continue
				}
				first[left] = true
			default:
				continue
			}
			found(spec.Names[i].Name)
		}

		return true
	})
	return first
}

// has reports whether the plans contain a variant of a statement with the
// template "text". The map key of a variant is the name of the statement, a
// space and a description of the variant.
func (p Plans) has(text string) bool {
	for name, plan := range p {
		if strings.Contains(name, " ") && plan.Statement().Template == text {
			return true
		}
	}
	return false
}

// templateIn returns the template in an expression: the argument of a call of
// query or command, or the field Template of a sqltext.Series. It returns any
// other expression unchanged.
func templateIn(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.CallExpr:
		name := e.Fun
		if selector, ok := name.(*ast.SelectorExpr); ok {
			name = selector.Sel
		}
		if name, ok := name.(*ast.Ident); ok && len(e.Args) == 1 &&
			slices.Contains([]string{"query", "command", "Query", "Command"}, name.Name) {
			return e.Args[0]
		}
	case *ast.UnaryExpr:
		series, ok := e.X.(*ast.CompositeLit)
		if !ok {
			break
		}
		for _, element := range series.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok && pair.Key.(*ast.Ident).Name == "Template" {
				return pair.Value
			}
		}
	}
	return e
}

// leftmost returns the first operand of a concatenation.
func leftmost(e ast.Expr) ast.Expr {
	for {
		sum, ok := e.(*ast.BinaryExpr)
		if !ok {
			return e
		}
		e = sum.X
	}
}

func unquote(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}
