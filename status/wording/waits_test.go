package wording

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/step"
)

// TestEachWaitIsListedOnce compares the list with the holds that package step declares, and
// with the documentation.
func TestEachWaitIsListedOnce(t *testing.T) {
	listed := map[step.Hold]int{}
	doc, err := os.ReadFile(filepath.Join("..", "..", "deploy", "docs", "guides", "holds.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range Waits {
		listed[w.Hold]++
		if row := "| `" + string(w.Hold) + "` | " + w.For + " | " + w.Ends + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("holds.md lacks %s", row)
		}
	}
	dir := filepath.Join("..", "..", "reconciler", "step")
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, f.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			v, is := n.(*ast.ValueSpec)
			if !is || len(v.Names) != 1 || !strings.HasPrefix(v.Names[0].Name, "Held") || v.Names[0].Name == "Held" || len(v.Values) != 1 {
				return true
			}
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if found++; err != nil || listed[step.Hold(text)] != 1 {
				t.Errorf("%s is listed %d times", v.Names[0].Name, listed[step.Hold(text)])
			}
			return true
		})
	}
	if found != len(Waits) {
		t.Errorf("package step has %d holds, and %d are listed", found, len(Waits))
	}
}

func TestWaiting(t *testing.T) {
	for want, got := range map[string]string{
		"1 step waits for a window: opens on Monday":                Waiting(1, step.HeldWindow, "opens on Monday"),
		"3 steps wait for an approval":                              Waiting(3, step.HeldApproval, ""),
		"1 step waits for what only a newer weir knows":             Waiting(1, "what only a newer weir knows", ""),
		"2 steps wait for an earlier wave: waits for the target eu": Waiting(2, step.HeldWave, "waits for the target eu"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
