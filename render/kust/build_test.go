package kust_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/tree"
)

var update = flag.Bool("update", false, "rewrite the goldens")

func TestMain(m *testing.M) {
	if worker.Asked() {
		os.Exit(worker.Serve())
	}
	if name := os.Getenv(childVariable); name != "" {
		child(name)
		return
	}
	goleak.VerifyTestMain(patient{m})
}

// patient tests wait for the builds that were given up: kustomize knows no context, and
// goleak waits for half a second.
type patient struct{ *testing.M }

func (p patient) Run() int {
	code := p.M.Run()
	for deadline := time.Now().Add(time.Minute); goleak.Find() != nil && time.Now().Before(deadline); {
		continue
	}
	return code
}

// golden is a txtar archive: a header of "name: value" lines, the files of a
// tree, and what is wanted of it under want/.
type golden struct {
	archive *txtar.Archive
	tree    tree.Map
	path    string
	kubectl bool // what kubectl kustomize prints is the same
	origins bool // the origin of every scalar is wanted
	opts    kust.Options
	want    map[string]string
}

func readGolden(t *testing.T, name string) golden {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	g := golden{archive: a, tree: tree.Map{}, path: ".", want: map[string]string{}}
	g.opts.Vars = map[string]string{}
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
			g.opts.Vars[k] = v
		case "strict":
			g.opts.Strict = func(ref intent.ObjectRef) bool { return ref.Kind == value }
		case "origins":
			g.origins = value == "all"
		case "kubectl":
			g.kubectl = value == "same"
		default:
			t.Fatalf("%s: unknown header %q", name, key)
		}
	}
	for _, f := range a.Files {
		if section, ok := strings.CutPrefix(f.Name, "want/"); ok {
			g.want[section] = string(f.Data)
			continue
		}
		data := string(f.Data)
		if strings.HasPrefix(data, "symlink:") {
			data = strings.TrimSpace(data)
		}
		g.tree[f.Name] = data
	}
	return g
}

func (g golden) rewrite(t *testing.T, name string, got map[string]string) {
	t.Helper()
	var files []txtar.File
	for _, f := range g.archive.Files {
		if !strings.HasPrefix(f.Name, "want/") {
			files = append(files, f)
		}
	}
	for _, section := range []string{"yaml", "diags", "origins"} {
		if got[section] != "" {
			files = append(files, txtar.File{Name: "want/" + section, Data: []byte(got[section])})
		}
	}
	g.archive.Files = files
	if err := os.WriteFile(name, txtar.Format(g.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGoldens(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			g := readGolden(t, name)
			g.opts.Limits.Duration = 10 * time.Minute // the race detector on a busy machine is slow
			r, err := kust.Build(context.Background(), g.tree, g.path, g.opts)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{"diags": printDiags(r.Diags)}
			if !r.Diags.HasErrors() {
				got["yaml"] = string(r.YAML())
			}
			if g.origins {
				got["origins"] = printOrigins(r)
			}
			if *update {
				g.rewrite(t, name, got)
				return
			}
			for section, text := range got {
				if d := cmp.Diff(g.want[section], text); d != "" {
					t.Errorf("%s (-want +got):\n%s", section, d)
				}
			}
		})
	}
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

func printOrigins(r *kust.Result) string {
	var b strings.Builder
	for _, o := range r.Objects {
		fmt.Fprintln(&b, o.Ref)
		eachScalar(o.Node, nil, func(p intent.Path, n *yaml.Node) {
			at := "unknown"
			if pos, ok := r.Origin(o.Ref, p); ok {
				at = pos.String()
			}
			fmt.Fprintf(&b, "\t%s = %s: %s\n", p, strings.ReplaceAll(n.Value, "\n", "\\n"), at)
		})
	}
	return b.String()
}

func eachScalar(n *yaml.Node, p intent.Path, visit func(intent.Path, *yaml.Node)) {
	switch n.Kind {
	case yaml.ScalarNode:
		visit(p, n)
	case yaml.SequenceNode:
		for i, c := range n.Content {
			eachScalar(c, p.Join(intent.Index(i)), visit)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			eachScalar(n.Content[i+1], p.Join(n.Content[i].Value), visit)
		}
	}
}
