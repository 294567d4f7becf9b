package deploy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// The limits of the code. Tests have none but the length of a file; the emulator, which follows AWS's
// own structure, may have complex functions.
const (
	mostFileLines     = 400
	mostFunctionLines = 60
	mostComplexity    = 20
	mostMethods       = 30 // of a type, without promoted ones
	mostFields        = 30 // of a struct that has methods
	mostFiles         = 32 // of a package, without tests
)

// code has the sizes of everything that has a limit.
type code struct {
	files     map[string]int // lines by path
	packages  map[string]int // files without tests by directory
	functions []function
	types     map[string]*typeShape // by directory and name, such as "render/kust.Result"
}

type function struct {
	name              string // "render/kust/build.go: Build" or "…: (Result).Field"
	lines, complexity int
}

// typeShape is a type's own methods and fields.
type typeShape struct {
	methods []string
	fields  int
}

// TestLimitsOfCode compares the code with the limits above. An exception that is no longer needed
// is an error too.
func TestLimitsOfCode(t *testing.T) {
	c := readCode(t)
	found := map[string]string{}
	over := func(name string, n, most int, unit string) {
		if n > most {
			found[name] = fmt.Sprintf("%d %s, at most %d", n, unit, most)
		}
	}
	for name, n := range c.files {
		over(name, n, mostFileLines, "lines")
	}
	for name, n := range c.packages {
		over(name, n, mostFiles, "files")
	}
	for _, f := range c.functions {
		over(f.name+" length", f.lines, mostFunctionLines, "lines")
		if !strings.HasPrefix(f.name, "reconciler/awsemu/") {
			over(f.name+" complexity", f.complexity, mostComplexity, "paths")
		}
	}
	for name, s := range c.types {
		over(name+" methods", len(s.methods), mostMethods, "methods")
		if len(s.methods) > 0 {
			over(name+" fields", s.fields, mostFields, "fields")
		}
	}
	for name, what := range found {
		if limitExceptions[name] == "" {
			t.Errorf("%s: %s: split it, or list it in limitExceptions with a reason", name, what)
		}
	}
	for name := range limitExceptions {
		if found[name] == "" {
			t.Errorf("limitExceptions: %s is within its limit: delete the line", name)
		}
	}
}

func readCode(t *testing.T) *code {
	t.Helper()
	c := &code{files: map[string]int{}, packages: map[string]int{}, types: map[string]*typeShape{}}
	err := filepath.WalkDir("..", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || e.Name() != ".." && strings.HasPrefix(e.Name(), ".")) {
			return fs.SkipDir
		}
		if e.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		rel, err := filepath.Rel("..", name)
		if err != nil {
			return err
		}
		return c.readFile(name, filepath.ToSlash(rel))
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.files) < 500 || len(c.functions) < 3000 {
		t.Fatalf("only %d files and %d functions found", len(c.files), len(c.functions))
	}
	return c
}

func (c *code) readFile(name, rel string) error {
	text, err := os.ReadFile(name) //nolint:gosec // a file of the project
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(f) {
		return nil
	}
	c.files[rel] = set.File(f.Pos()).LineCount()
	if strings.HasSuffix(rel, "_test.go") {
		return nil
	}
	dir := path.Dir(rel)
	c.packages[dir]++
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.addFunction(set, rel, d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					c.addType(dir, ts)
				}
			}
		}
	}
	return nil
}

func (c *code) shape(name string) *typeShape {
	if c.types[name] == nil {
		c.types[name] = &typeShape{}
	}
	return c.types[name]
}

func (c *code) addFunction(set *token.FileSet, rel string, d *ast.FuncDecl) {
	name := d.Name.Name
	if d.Recv != nil {
		receiver := typeName(path.Dir(rel), d.Recv.List[0].Type)
		s := c.shape(receiver)
		s.methods = append(s.methods, name)
		name = receiver[strings.LastIndexByte(receiver, '.')+1:] + "." + name
	}
	c.functions = append(c.functions, function{
		name:       rel + ": " + name,
		lines:      set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1,
		complexity: complexity(d),
	})
}

func (c *code) addType(dir string, ts *ast.TypeSpec) {
	s := c.shape(dir + "." + ts.Name.Name)
	st, ok := ts.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range st.Fields.List {
		s.fields += max(1, len(f.Names))
	}
}

// typeName names the type of a receiver by its directory and name.
func typeName(dir string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(dir, e.X)
	case *ast.IndexExpr:
		return typeName(dir, e.X)
	case *ast.IndexListExpr:
		return typeName(dir, e.X)
	case *ast.Ident:
		return dir + "." + e.Name
	}
	return ""
}

// complexity is the cyclomatic complexity of a function, counted as gocyclo does: one, and one more
// for each if, for, case, && and ||.
func complexity(d *ast.FuncDecl) int {
	n := 1
	ast.Inspect(d, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// TestComplexity counts functions whose complexity is known.
func TestComplexity(t *testing.T) {
	for text, want := range map[string]int{
		"func f() {}":                                   1,
		"func f() { if a && b || c { return } }":        4,
		"func f() { for range x { for a { g() } } }":    3,
		"func f() { switch x { case 1, 2: default: } }": 2,
		"func f() { select { case <-a: default: } }":    2,
		"func f() { g(func() { if a { b() } }) }":       2,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := complexity(f.Decls[0].(*ast.FuncDecl)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// limitExceptions may be larger than the limits. Each has its reason.
var limitExceptions = map[string]string{
	"cmd/weir": "one file for each command",

	"reconciler/awscloud/execute/execute.go: Executor.execute complexity": "a flat switch with a line for each action of package step",
	"reconciler/awscloud/read/scan_group.go: scanGroup complexity":        "a flat switch with a case for each member of AWS's answer",
	"reconciler/awsemu/asg/asg.go: Service length":                        "a table of operations, one line each",
	"status/metrics/metrics.go: New length":                               "a table of all metrics",

	"reconciler/awsemu/asg.Region methods":                    "a method for each operation of Auto Scaling that the emulator has",
	"reconciler/awsemu/ec2.Region methods":                    "a method for each operation of EC2 that the emulator has",
	"reconciler/cloudtest.env methods":                        "the vocabulary of the contract suite",
	"reconciler/workload/workloadtest.Server methods":         "a method for each request of Kubernetes' API that weir makes",
	"reconciler/awsemu/asg.Group fields":                      "the members of a group in AWS's model",
	"reconciler/awsemu/eks.nodegroup fields":                  "the members of a nodegroup in AWS's model",
	"reconciler/plan.PoolStatus fields":                       "the JSON of a pool",
	"render/manifest/kinds.AWSManagedControlPlaneSpec fields": "the fields of CAPA's type",
	"status/metrics.Metrics fields":                           "a field for each metric",
}
