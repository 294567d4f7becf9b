package render_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// golden is a txtar archive: a header of "name: value" lines, the files of a
// tree, and under want/ what rendering it gives.
type golden struct {
	archive *txtar.Archive
	tree    tree.Map
	path    string
	vars    map[string]string
	want    map[string]string
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	g := golden{archive: a, tree: tree.Map{}, path: ".", vars: map[string]string{}, want: map[string]string{}}
	for line := range strings.Lines(string(a.Comment)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		switch key {
		case "path":
			g.path = value
		case "var":
			k, v, _ := strings.Cut(value, "=")
			g.vars[k] = v
		default:
			t.Fatalf("%s: unknown header %q", name, key)
		}
	}
	for _, f := range a.Files {
		if section, ok := strings.CutPrefix(f.Name, "want/"); ok {
			g.want[section] = string(f.Data)
			continue
		}
		g.tree[f.Name] = string(f.Data)
	}
	return g
}

func (g golden) rewrite(t *testing.T, name string, sections []string, got map[string]string) {
	t.Helper()
	var files []txtar.File
	for _, f := range g.archive.Files {
		if !strings.HasPrefix(f.Name, "want/") {
			files = append(files, f)
		}
	}
	for _, s := range sections {
		if got[s] != "" {
			files = append(files, txtar.File{Name: "want/" + s, Data: []byte(got[s])})
		}
	}
	g.archive.Files = files
	if err := os.WriteFile(name, txtar.Format(g.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// results prints a render, one section for each view of it.
func results(t *testing.T, r *render.Result) (sections []string, got map[string]string) {
	t.Helper()
	got = map[string]string{"diags": printDiags(r.Diags)}
	sections = []string{"diags"}
	if len(r.Set.Pools)+len(r.Set.Clusters) > 0 {
		out, err := r.IntentsYAML(asItIs)
		if err != nil {
			t.Fatal(err)
		}
		got["intents"] = string(out)
		sections = append(sections, "intents")
	}
	for _, p := range r.Set.Pools {
		if p.LaunchTemplate == nil || p.LaunchTemplate.UserData.Text == "" {
			continue
		}
		s := "userdata/" + p.Key.String()
		got[s] = strings.ReplaceAll(p.LaunchTemplate.UserData.Text, "\x00", "%")
		if !strings.HasSuffix(got[s], "\n") {
			got[s] += "\n"
		}
		sections = append(sections, s)
	}
	return sections, got
}

func printDiags(l diag.List) string {
	var b strings.Builder
	for _, d := range l {
		fmt.Fprintln(&b, d)
		if d.Detail != "" {
			fmt.Fprintf(&b, "\t%s\n", d.Detail)
		}
		for _, r := range d.Related {
			fmt.Fprintf(&b, "\t%s: %s\n", r.Position, r.Message)
		}
	}
	return b.String()
}

func TestGoldens(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			g := readGolden(t, name)
			r, err := render.Render(context.Background(), g.tree, g.path, render.Options{Vars: g.vars})
			if err != nil {
				t.Fatal(err)
			}
			sections, got := results(t, r)
			if *update {
				g.rewrite(t, name, sections, got)
				return
			}
			if d := cmp.Diff(present(g.want), present(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func present(m map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if v != "" {
			out[k] = v
		}
	}
	return out
}
