package lazyregexp_test

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

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// A wrong expression would panic only at its first use, so this test compiles all expressions of the repository.
// It also finds package variables that compile an expression at each start of weir.
func TestAllExpressionsCompile(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, name := range compiledAtStart(file) {
			t.Errorf("%s: the variable %s is compiled at each start: use lazyregexp.New", path, name)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			text, ok := expression(node)
			if !ok {
				return true
			}
			n++
			if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 90 {
		t.Errorf("%d expressions were found: does the test still find them?", n)
	}
}

// compiledAtStart returns the package variables whose value is a call of regexp.MustCompile.
func compiledAtStart(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, value := range v.Values {
				if calls(value, "regexp", "MustCompile") != nil {
					names = append(names, v.Names[i].Name)
				}
			}
		}
	}
	return names
}

// calls returns node as a call of a package's function, or nil.
func calls(node ast.Node, pkg, name string) *ast.CallExpr {
	call, ok := node.(*ast.CallExpr)
	if !ok {
		return nil
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || fun.Sel.Name != name {
		return nil
	}
	if x, ok := fun.X.(*ast.Ident); !ok || x.Name != pkg {
		return nil
	}
	return call
}

// expression returns the text of a call of lazyregexp.New with a constant text.
func expression(node ast.Node) (string, bool) {
	call := calls(node, "lazyregexp", "New")
	if call == nil {
		return "", false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

func TestMethods(t *testing.T) {
	r := lazyregexp.New(`([a-z]+)=([0-9]+)`)
	if !r.MatchString("a=1") || r.MatchString("a=b") {
		t.Error("MatchString")
	}
	if got := r.FindStringSubmatch("size=12"); len(got) != 3 || got[2] != "12" {
		t.Errorf("FindStringSubmatch: %q", got)
	}
	if got := r.ReplaceAllString("a=1 b=2", "$1"); got != "a b" {
		t.Errorf("ReplaceAllString: %q", got)
	}
	if got := r.String(); got != `([a-z]+)=([0-9]+)` {
		t.Errorf("String: %q", got)
	}
}
