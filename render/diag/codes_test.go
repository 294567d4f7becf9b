package diag_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/diag"
)

var update = flag.Bool("update", false, "write DIAGNOSTICS.md anew")

const (
	module   = "../.."
	document = "DIAGNOSTICS.md"
)

var kebab = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Each code that the sources report is registered, and each that is registered
// is reported somewhere.
func TestCodesAreRegistered(t *testing.T) {
	used := readSources(t).codes()
	for _, code := range slices.Sorted(maps.Keys(used)) {
		if _, ok := diag.RuleOf(code); !ok {
			t.Errorf("%s reports the code %q, which is not registered: add a line such as\n"+
				"\t{%q, \"e\", \"what it means, as a sentence without full stop\", \"What to do.\"},\n"+
				"to the fitting list of render/diag/rules*.go (e is an error, w a warning, i a note, ew an error or a warning), and run\n"+
				"\tgo test ./render/diag -update", used[code], code, code)
		}
	}
	for _, r := range diag.Rules() {
		if used[r.Code] == "" {
			t.Errorf("no source reports the code %q: remove it from render/diag/rules*.go, and run go test ./render/diag -update", r.Code)
		}
	}
}

func TestRulesAreWhole(t *testing.T) {
	for _, r := range diag.Rules() {
		switch {
		case !kebab.MatchString(r.Code):
			t.Errorf("%s is not in kebab case", r.Code)
		case len(r.Severities) == 0:
			t.Errorf("%s has no severity", r.Code)
		case r.Short == "" || strings.HasSuffix(r.Short, ".") || strings.Contains(r.Short, "\n"):
			t.Errorf("%s: its meaning must be one sentence without full stop: %q", r.Code, r.Short)
		case !strings.HasSuffix(r.Help, "."):
			t.Errorf("%s: what to do must be sentences: %q", r.Code, r.Help)
		}
	}
}

// DIAGNOSTICS.md is what the registry says.
func TestDocument(t *testing.T) {
	want := diag.Document()
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("DIAGNOSTICS.md is not what render/diag/rules.go says: run go test ./render/diag -update")
	}
}

// sources are the module's files, and what in them takes a code.
type sources struct {
	t     *testing.T
	fset  *token.FileSet
	files []*ast.File
	// takes are the functions with a parameter named code, by name, a method's with a
	// dot before it, and how many parameters they have: the parameter's position.
	takes map[string]int
	found map[string]string // code: where
}

func readSources(t *testing.T) *sources {
	t.Helper()
	s := &sources{t: t, fset: token.NewFileSet(), takes: map[string]int{}, found: map[string]string{}}
	for _, dir := range []string{"render", "reconciler", "cmd"} {
		err := filepath.WalkDir(filepath.Join(module, dir), func(name string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && (e.Name() == "testdata" || e.Name() == "awsemu" || e.Name() == "cloudtest" || isModule(name)):
				return filepath.SkipDir
			case e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			f, err := parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution)
			if err == nil {
				s.files = append(s.files, f)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range s.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if i := codeField(fn.Type.Params, true); i >= 0 {
					name := fn.Name.Name
					if fn.Recv != nil {
						name = "." + name
					}
					s.takes[counted(name, fn.Type.Params.NumFields())] = i
				}
			}
		}
	}
	return s
}

// isModule reports a directory with a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// codeField is the index of the field or parameter of type string named code.
func codeField(list *ast.FieldList, anyCase bool) int {
	n := 0
	for _, f := range list.List {
		for _, name := range f.Names {
			if typ, ok := f.Type.(*ast.Ident); ok && typ.Name == "string" && (name.Name == "code" || anyCase && name.Name == "Code") {
				return n
			}
			n++
		}
		if len(f.Names) == 0 {
			n++
		}
	}
	return -1
}

// codes finds the codes: what is passed as a parameter named code, set or
// compared as a field named Code, in a table's column named code, or held by a
// constant whose name begins with code.
func (s *sources) codes() map[string]string {
	for _, f := range s.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				for _, name := range calledName(n) {
					if i, ok := s.takes[name]; ok && i < len(n.Args) {
						s.note(n.Args[i])
						break
					}
				}
			case *ast.CompositeLit:
				s.literal(n)
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if sel, ok := left.(*ast.SelectorExpr); ok && sel.Sel.Name == "Code" && len(n.Rhs) == len(n.Lhs) {
						s.note(n.Rhs[i])
					}
					if id, ok := left.(*ast.Ident); ok && id.Name == "code" && len(n.Rhs) == len(n.Lhs) {
						s.note(n.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if strings.HasPrefix(strings.ToLower(name.Name), "code") && i < len(n.Values) {
						s.note(n.Values[i])
					}
				}
			}
			return true
		})
	}
	return s.found
}

// counted tells methods of one name that differ in their parameters from each other.
func counted(name string, parameters int) string { return fmt.Sprintf("%s/%d", name, parameters) }

// calledName is the name of a called function as takes may have it.
func calledName(c *ast.CallExpr) []string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return []string{counted(f.Name, len(c.Args))}
	case *ast.SelectorExpr:
		return []string{counted("."+f.Sel.Name, len(c.Args)), counted(f.Sel.Name, len(c.Args))}
	}
	return nil
}

// literal takes the codes of a composite literal: its field Code, or a column
// named code of a table.
func (s *sources) literal(n *ast.CompositeLit) {
	for _, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && (id.Name == "Code" || id.Name == "code") {
				s.note(kv.Value)
			}
		}
	}
	list, ok := n.Type.(*ast.ArrayType)
	if !ok {
		return
	}
	row, ok := list.Elt.(*ast.StructType)
	if !ok {
		return
	}
	column := codeField(row.Fields, true)
	for _, e := range n.Elts {
		if cells, ok := e.(*ast.CompositeLit); ok && column >= 0 && column < len(cells.Elts) {
			s.note(cells.Elts[column])
		}
	}
}

// note records a literal. Where a code is no literal it must be a variable,
// field or constant whose own value is found elsewhere: anything else would hide
// a code from this test.
func (s *sources) note(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BasicLit:
		code, err := strconv.Unquote(e.Value)
		// Codes of AWS are in camel case, and not ours.
		if err == nil && kebab.MatchString(code) && s.found[code] == "" {
			at := s.fset.Position(e.Pos())
			s.found[code] = fmt.Sprintf("%s:%d", strings.TrimPrefix(filepath.ToSlash(at.Filename), module+"/"), at.Line)
		}
	case *ast.CallExpr: // such as cmp.Or
		for _, arg := range e.Args {
			s.note(arg)
		}
	case *ast.BinaryExpr:
		s.t.Errorf("%s: write the code as one literal, so that this test can find it", s.fset.Position(e.Pos()))
	}
}
