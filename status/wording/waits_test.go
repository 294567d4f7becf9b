package wording

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	for _, w := range step.Waits {
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
	if found != len(step.Waits) {
		t.Errorf("package step has %d holds, and %d are listed", found, len(step.Waits))
	}
}

func TestWaits(t *testing.T) {
	held := func(h step.Hold, reason, ends string) step.Step {
		return step.Step{Held: h, HeldReason: reason, HeldEnds: ends}
	}
	for name, c := range map[string]struct {
		steps []step.Step
		want  []string
	}{
		"nothing": {[]step.Step{{}}, nil},
		"the hold's own end": {[]step.Step{held(step.HeldWindow, "opens on Monday", "")},
			[]string{"1 step waits for a window: opens on Monday; released by: the window, or weir reconcile prod --override-window"}},
		"a better one":         {[]step.Step{held(step.HeldSuspended, "", "weir resume --all")}, []string{"1 step waits for the end of a suspension; released by: weir resume --all"}},
		"the reason says it":   {[]step.Step{held(step.HeldApproval, "weir approve 12ab; x", "weir approve 12ab")}, []string{"1 step waits for an approval: weir approve 12ab; x"}},
		"of a newer weir":      {[]step.Step{held("the moon", "", "")}, []string{"1 step waits for the moon"}},
		"the same, twice":      {[]step.Step{held(step.HeldWave, "eu", "x"), {}, held(step.HeldWave, "eu", "x")}, []string{"2 steps wait for an earlier wave: eu; released by: x"}},
		"for different causes": {[]step.Step{held(step.HeldWave, "eu", "x"), held(step.HeldWave, "us", "x")}, []string{"1 step waits for an earlier wave: eu; released by: x", "1 step waits for an earlier wave: us; released by: x"}},
		"for many": {[]step.Step{held(step.HeldRolloutLimit, "1", ""), held(step.HeldRolloutLimit, "2", ""), held(step.HeldRolloutLimit, "3", ""), held(step.HeldRolloutLimit, "4", "y"), held(step.HeldRolloutLimit, "5", ""), held(step.HeldRolloutLimit, "2", "")},
			[]string{"1 step waits for other rollouts to end: 1; released by: the other rollouts", "2 steps wait for other rollouts to end: 2; released by: the other rollouts",
				"1 step waits for other rollouts to end: 3; released by: the other rollouts", "2 steps wait for other rollouts to end; released by: the other rollouts"}},
	} {
		var got []string
		for _, w := range WaitsOf("prod", c.steps) {
			got = append(got, w.Text())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}

// Nobody else has the words of a wait: a second copy would soon say something else.
func TestWaitsHaveOneCopy(t *testing.T) {
	for _, root := range []string{"..", filepath.Join("..", "..", "cmd")} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".tmpl" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(text)) {
				line, _, _ = strings.Cut(line, "//")
				for _, w := range step.Waits {
					for _, verb := range []string{"wait for ", "waits for ", "Waits for "} {
						if strings.Contains(line, verb+w.For) {
							t.Errorf("%s says by itself what steps wait for: %s", path, strings.TrimSpace(line))
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
