package reconciler

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of stages in ARCHITECTURE.md")

// Every need is made by an earlier stage of the same pass, and every fact by one stage.
func TestStagesMakeWhatLaterOnesNeed(t *testing.T) {
	names, made := map[string]bool{}, map[fact]*stage{}
	needed := map[fact]bool{"result": true}
	for i := range stages {
		s := &stages[i]
		if names[s.name] || s.name == "" || s.does == "" {
			t.Errorf("stage %d: the name %q is used twice, or something is missing", i, s.name)
		}
		names[s.name] = true
		for _, f := range s.needs {
			needed[f] = true
			if by := made[f]; by == nil {
				t.Errorf("%s needs %q, which no earlier stage makes", s.name, f)
			} else if by.applies && !s.applies {
				t.Errorf("%s needs %q, which %s makes only in passes that apply", s.name, f, by.name)
			}
		}
		for _, f := range s.makes {
			if by := made[f]; by != nil {
				t.Errorf("%s makes %q, as %s does", s.name, f, by.name)
			}
			made[f] = s
		}
	}
	for _, name := range factFields() {
		if made[fact(name)] == nil {
			t.Errorf("no stage makes the field %s", name)
		}
	}
	for f := range made {
		if !needed[f] {
			t.Errorf("no stage needs %q", f)
		}
	}
}

// The table says of each stage exactly which fields its function reads and which it sets.
func TestStagesReadAndSetWhatTheySay(t *testing.T) {
	const most = 60
	fset := token.NewFileSet()
	methods := passMethods(t, fset)
	for _, m := range methods {
		if n := fset.Position(m.decl.End()).Line - fset.Position(m.decl.Pos()).Line + 1; n > most {
			t.Errorf("%s has %d lines, and may have %d", m.decl.Name.Name, n, most)
		}
		if m.whole {
			t.Errorf("%s passes the state of the pass on as a whole", m.decl.Name.Name)
		}
	}
	for _, s := range stages {
		name := runtime.FuncForPC(reflect.ValueOf(s.run).Pointer()).Name()
		reads, sets := map[string]bool{}, map[string]bool{}
		follow(methods, name[strings.LastIndexByte(name, '.')+1:], map[string]bool{}, reads, sets)
		for name := range sets {
			delete(reads, name)
		}
		if diff := cmp.Diff(fieldsOf(s.makes), slices.Sorted(maps.Keys(sets))); diff != "" {
			t.Errorf("%s: the fields that it sets (-table +code):\n%s", s.name, diff)
		}
		if diff := cmp.Diff(fieldsOf(s.needs), slices.Sorted(maps.Keys(reads))); diff != "" {
			t.Errorf("%s: the fields that it reads (-table +code):\n%s", s.name, diff)
		}
	}
}

// fieldsOf returns the facts that are fields, sorted.
func fieldsOf(facts []fact) (out []string) {
	fields := factFields()
	for _, f := range facts {
		if slices.Contains(fields, string(f)) {
			out = append(out, string(f))
		}
	}
	slices.Sort(out)
	return out
}

// passMethod is a method of passState: the fields that it reads and sets, and the methods that it calls.
type passMethod struct {
	decl               *ast.FuncDecl
	reads, sets, calls map[string]bool
	whole              bool // it uses the receiver other than for these
}

func passMethods(t *testing.T, fset *token.FileSet) map[string]*passMethod {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*passMethod{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || len(fn.Recv.List[0].Names) == 0 {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				if id, ok := star.X.(*ast.Ident); ok && id.Name == "passState" {
					out[fn.Name.Name] = methodOf(fn)
				}
			}
		}
	}
	if len(out) < len(stages) {
		t.Fatalf("found %d methods", len(out))
	}
	return out
}

func methodOf(fn *ast.FuncDecl) *passMethod {
	m := &passMethod{decl: fn, reads: map[string]bool{}, sets: map[string]bool{}, calls: map[string]bool{}}
	receiver, fields := fn.Recv.List[0].Names[0].Name, factFields()
	selected := func(n ast.Node) string {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == receiver {
				return sel.Sel.Name
			}
		}
		return ""
	}
	set := map[ast.Node]bool{}
	used := map[ast.Node]bool{}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok && assign.Tok == token.ASSIGN {
			for _, left := range assign.Lhs {
				if name := selected(left); slices.Contains(fields, name) {
					m.sets[name], set[left] = true, true
				}
			}
		}
		if name := selected(n); name != "" {
			used[n.(*ast.SelectorExpr).X] = true
			switch {
			case set[n]:
			case slices.Contains(fields, name):
				m.reads[name] = true
			default:
				m.calls[name] = true
			}
		}
		if id, ok := n.(*ast.Ident); ok && id.Name == receiver && !used[n] {
			m.whole = true
		}
		return true
	})
	return m
}

// follow adds what a method reads and sets, with all methods that it calls.
func follow(methods map[string]*passMethod, name string, seen, reads, sets map[string]bool) {
	m := methods[name]
	if m == nil || seen[name] {
		return
	}
	seen[name] = true
	maps.Copy(reads, m.reads)
	maps.Copy(sets, m.sets)
	for callee := range m.calls {
		follow(methods, callee, seen, reads, sets)
	}
}

// ARCHITECTURE.md shows the table of stages. Run the test with -update to write it.
func TestTheStagesAreInTheArchitecture(t *testing.T) {
	const file, begin, end = "../ARCHITECTURE.md", "\n| Stage | Needs | Makes | What happens |\n", "\n## "
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		t.Fatal("it has no table of stages")
	}
	want := before + begin + stageTable() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("go test ./reconciler -run Architecture -update writes it (-want +got):\n%s", diff)
	}
}

func stageTable() string {
	var b strings.Builder
	b.WriteString("| --- | --- | --- | --- |\n")
	list := func(facts []fact) string {
		out := make([]string, len(facts))
		for i, f := range facts {
			if out[i] = string(f); slices.Contains(factFields(), out[i]) {
				out[i] = "`" + out[i] + "`"
			}
		}
		return strings.Join(out, ", ")
	}
	var applying []string
	for _, s := range stages {
		b.WriteString("| " + s.name + " | " + list(s.needs) + " | " + list(s.makes) + " | " + s.does + " |\n")
		if s.applies {
			applying = append(applying, s.name)
		}
	}
	b.WriteString("\nA pass that only plans skips the stages *" + applying[0] + "* to *" + applying[len(applying)-1] + "*.\n")
	return b.String()
}
