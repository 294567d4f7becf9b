package render

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/tree"
)

// TestUserDataDecidesNothingElse gives the objects that user data is made of another
// text, one at a time, and wants the same pools but for their user data. Else a secret could show in
// what weir makes of it, and comparing fields alone would not be enough.
func TestUserDataDecidesNothingElse(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files, path, vars := tree.Map{}, ".", map[string]string{}
		for line := range strings.Lines(string(a.Comment)) {
			switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
			case "path":
				path = value
			case "var":
				k, v, _ := strings.Cut(value, "=")
				vars[k] = v
			}
		}
		for _, f := range a.Files {
			files[f.Name] = string(f.Data)
		}
		r, err := Render(t.Context(), files, path, Options{Vars: vars})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Objects {
			if kinds.Plain(o.Ref) {
				continue
			}
			for i := 0; i+1 < len(o.Node.Content); i += 2 {
				if !slices.Contains([]string{"spec", "data", "stringData", "binaryData"}, o.Node.Content[i].Value) {
					continue
				}
				eachText(o.Node.Content[i+1], func(n *yaml.Node) {
					was := n.Value
					n.Value = strings.Map(otherRune, was)
					again, _ := manifest.Intents(r.Objects, manifest.Options{})
					n.Value = was
					for _, p := range r.Set.Pools {
						q := again.Pool(p.Key.String())
						if q == nil || p.LaunchTemplate == nil || p.LaunchTemplate.UserData.Text == q.LaunchTemplate.UserData.Text {
							continue // its user data is not valid any more, or not made of this
						}
						if compared++; !reflect.DeepEqual(bare(p), bare(*q)) {
							t.Errorf("%s: %s differs by %q alone:\n%+v\n%+v", name, p.Key, was, bare(p), bare(*q))
						}
					}
					if !reflect.DeepEqual(r.Set.Clusters, again.Clusters) {
						t.Errorf("%s: its clusters differ by %q alone", name, was)
					}
				})
			}
		}
	}
	if compared < 50 {
		t.Errorf("%d pools with other user data were compared", compared)
	}
}

// otherRune is another letter or digit in the place of one, so that a text keeps its form.
func otherRune(r rune) rune {
	switch {
	case r >= 'a' && r < 'z', r >= 'A' && r < 'Z', r >= '1' && r < '9':
		return r + 1
	case r == 'z', r == 'Z', r == '9':
		return r - 1
	}
	return r
}

func eachText(n *yaml.Node, visit func(n *yaml.Node)) {
	if n.Kind == yaml.ScalarNode {
		visit(n)
	}
	for i, c := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			eachText(c, visit)
		}
	}
}
