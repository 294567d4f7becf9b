package edit_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	examplerepo "github.com/weir-gitops/weir/example-repo"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// thing is an object of the tests, of a kind that weir leaves alone.
func thing(name string) intent.ObjectRef {
	return intent.ObjectRef{APIVersion: "example.org/v1", Kind: "Thing", Namespace: "default", Name: name}
}

// TestGoldens sets what the headers of the archives change, and compares what changes:
//
//	place: NAME DIR [VAR=VALUE…]
//	change: PLACE [NAMESPACE/]NAME FIELD VALUE
//	change: PLACE [NAMESPACE/]NAME FIELD yaml: VALUE
//
// Whatever is set renders as wanted, and a second time nothing is left to do.
func TestGoldens(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no goldens", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, places, changes := read(t, a)
			got := set(t, files, places, changes)
			text := told(files, got)
			want := ""
			a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool {
				if f.Name == "want" {
					want = string(f.Data)
				}
				return f.Name == "want"
			})
			if *update {
				a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(text)})
				if err := os.WriteFile(name, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, text); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for p, content := range got.Files {
				if lost := lostLines(files[p], string(content)); lost > len(changes) && !strings.Contains(string(a.Comment), "lines may go") {
					t.Errorf("%d lines of %s are lost", lost, p)
				}
			}
			now := maps.Clone(files)
			for p, content := range got.Files {
				now[p] = string(content)
			}
			again := set(t, now, places, changes)
			if len(again.Files) != 0 || len(again.Placed) != len(got.Placed) {
				t.Errorf("a second time there was more to do: %s", told(now, again))
			}
		})
	}
}

// lostLines are those of a file that are not in another, in order.
func lostLines(was, now string) (lost int) {
	rest := strings.Split(now, "\n")
	for line := range strings.SplitSeq(was, "\n") {
		if i := slices.Index(rest, line); i >= 0 {
			rest = rest[i+1:]
		} else {
			lost++
		}
	}
	return lost
}

func set(t *testing.T, files tree.Map, places []edit.Place, changes []edit.Change) *edit.Result {
	t.Helper()
	got, err := edit.Set(t.Context(), files, places, changes)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func read(t *testing.T, a *txtar.Archive) (files tree.Map, places []edit.Place, changes []edit.Change) {
	t.Helper()
	files = tree.Map{}
	for _, f := range a.Files {
		if f.Name == "want" {
			continue
		}
		text := string(f.Data)
		if strings.HasPrefix(text, "symlink:") {
			text = strings.TrimSpace(text)
		}
		files[f.Name] = strings.ReplaceAll(strings.ReplaceAll(text, "<CR>", "\r"), "<END>\n", "")
	}
	for line := range strings.Lines(string(a.Comment)) {
		words := strings.Fields(line)
		switch {
		case len(words) > 2 && words[0] == "place:":
			p := edit.Place{Name: words[1], Dir: words[2], Options: render.Options{Vars: map[string]string{}, GiveValue: "in the configuration"}}
			for _, v := range words[3:] {
				name, value, _ := strings.Cut(v, "=")
				p.Options.Vars[name] = value
			}
			places = append(places, p)
		case len(words) >= 5 && words[0] == "change:":
			ref := thing(words[2])
			if namespace, name, ok := strings.Cut(words[2], "/"); ok {
				ref.Namespace, ref.Name = namespace, name
			}
			field, err := intent.ParsePath(words[3])
			if err != nil {
				t.Fatal(err)
			}
			value := any(words[4])
			if words[4] == "yaml:" {
				value = nil
				if err := yaml.Unmarshal([]byte(strings.Join(words[5:], " ")), &value); err != nil {
					t.Fatal(err)
				}
			}
			changes = append(changes, edit.Change{Place: words[1], Object: ref, Field: field, Value: value})
		case !strings.HasPrefix(line, "#") && len(words) > 0:
			t.Fatalf("unknown line %q", line)
		}
	}
	return files, places, changes
}

// told is what became of changes, with the lines that changed.
func told(files tree.Map, got *edit.Result) string {
	var b strings.Builder
	for _, p := range got.Placed {
		fmt.Fprintf(&b, "%s %s at %s\n", p.Place, p.Object.Name, p.At)
	}
	for _, r := range got.Refused {
		fmt.Fprintf(&b, "%s %s refused: %s\n", r.Place, r.Object.Name, r.Text)
		if r.Variable != "" {
			fmt.Fprintf(&b, "  variable %s\n", r.Variable)
		}
	}
	for _, p := range got.Paths() {
		fmt.Fprintf(&b, "%s:\n", p)
		was, now := strings.SplitAfter(files[p], "\n"), strings.SplitAfter(string(got.Files[p]), "\n")
		same := 0
		for same < min(len(was), len(now)) && was[same] == now[same] {
			same++
		}
		was, now = was[same:], now[same:]
		for len(was) > 0 && len(now) > 0 && was[len(was)-1] == now[len(now)-1] {
			was, now = was[:len(was)-1], now[:len(now)-1]
		}
		for sign, lines := range map[string][]string{"-": was} {
			for _, l := range lines {
				fmt.Fprintf(&b, "  %d%s%s\n", same+1, sign, strings.ReplaceAll(strings.TrimSuffix(l, "\n"), "\r", "<CR>"))
			}
		}
		for _, l := range now {
			fmt.Fprintf(&b, "  %d+%s\n", same+1, strings.ReplaceAll(strings.TrimSuffix(l, "\n"), "\r", "<CR>"))
		}
	}
	return b.String()
}

// TestExample pins the image of a pool of the example in each of its overlays, in one and
// in both.
func TestExample(t *testing.T) {
	t.Parallel()
	files := tree.Map{}
	err := fs.WalkDir(examplerepo.Files, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := examplerepo.Files.ReadFile(p)
		files[p] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	place := func(name, cluster string) edit.Place {
		return edit.Place{Name: name, Dir: "overlays/" + name, Options: render.Options{Vars: map[string]string{
			"CLUSTER_NAME": cluster, "KUBERNETES_VERSION": "v1.33.0", "AWS_REGION": "eu-central-1", "EKS_CLUSTER_NAME": cluster,
			"API_SERVER": "api.example.org", "JOIN_TOKEN": "abcdef.0123456789abcdef", "CA_CERT_HASH": "sha256:" + strings.Repeat("0", 64),
		}}}
	}
	places := []edit.Place{place("dev-eu", "dev"), place("prod-eu", "prod"), place("dev-kubeadm", "adm")}
	change := func(place, pool string) edit.Change {
		i := slices.IndexFunc(places, func(p edit.Place) bool { return p.Name == place })
		r, err := render.Render(t.Context(), files, places[i].Dir, places[i].Options)
		if err != nil {
			t.Fatal(err)
		}
		for k := range r.Set.Pools {
			if p := &r.Set.Pools[k]; p.Key.Name == pool {
				object, field, ok := edit.Image(p)
				if !ok {
					t.Fatalf("%s of %s chooses no image", pool, place)
				}
				return edit.Change{Place: place, Object: object, Field: field, Value: "ami-0123456789abcdef0"}
			}
		}
		t.Fatalf("%s has no pool %s: %v", place, pool, r.Diags)
		return edit.Change{}
	}
	for name, c := range map[string]struct {
		changes []edit.Change
		paths   []string
	}{
		"one":     {[]edit.Change{change("dev-eu", "dev-spot-workers")}, []string{"overlays/dev-eu/kustomization.yaml"}},
		"another": {[]edit.Change{change("dev-kubeadm", "adm-workers")}, []string{"pools/kubeadm/awsmachinepool-patch.yaml"}},
		"both":    {[]edit.Change{change("dev-eu", "dev-spot-workers"), change("prod-eu", "prod-spot-workers")}, []string{"overlays/dev-eu/kustomization.yaml", "overlays/prod-eu/kustomization.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := set(t, files, places, c.changes)
			if len(got.Placed) != len(c.changes) {
				t.Fatalf("refused: %v", got.Refused)
			}
			t.Log(told(files, got))
			for _, w := range c.changes {
				i := slices.IndexFunc(places, func(p edit.Place) bool { return p.Name == w.Place })
				r, err := render.Render(t.Context(), got.Tree, places[i].Dir, places[i].Options)
				if err != nil {
					t.Fatal(err)
				}
				pinned := 0
				for k := range r.Set.Pools {
					if l := r.Set.Pools[k].LaunchTemplate; l != nil && l.Image.Kind == intent.ImageByID && l.Image.Name == w.Value {
						pinned++
					}
				}
				if pinned != 1 {
					t.Errorf("%d pools of %s have the image", pinned, w.Place)
				}
			}
		})
	}
}
