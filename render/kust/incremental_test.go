package kust_test

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
	"pgregory.net/rapid"
)

// watched is a tree that notes what was asked of it, with the answer.
type watched struct {
	tree.Map
	seen map[string]string
}

func answerOf(e tree.Entry, err error) string {
	if err != nil {
		return "missing"
	}
	if e.Mode == tree.Dir {
		return "directory"
	}
	return e.Mode.String() + e.Hash
}

func namesOf(entries []tree.Entry) string {
	var names []string
	for _, e := range entries {
		if ext := path.Ext(e.Name); (ext == ".yaml" || ext == ".yml") && e.Mode != tree.Dir {
			names = append(names, e.Name)
		}
	}
	return strings.Join(names, "|")
}

func (w watched) Lookup(p string) (tree.Entry, error) {
	e, err := w.Map.Lookup(p)
	w.seen["at "+p] = answerOf(e, err)
	return e, err
}

func (w watched) ReadDir(p string) ([]tree.Entry, error) {
	entries, err := w.Map.ReadDir(p)
	w.seen["in "+p] = namesOf(entries)
	return entries, err
}

// changed reports whether something that was asked has another answer in next.
func (w watched) changed(next tree.Map) bool {
	for asked, was := range w.seen {
		var now string
		if p, ok := strings.CutPrefix(asked, "at "); ok {
			now = answerOf(next.Lookup(p))
		} else {
			entries, _ := next.ReadDir(strings.TrimPrefix(asked, "in "))
			now = namesOf(entries)
		}
		if now != was {
			return true
		}
	}
	return false
}

// printed is all that a caller can see of a build.
func printed(r *kust.Result) string {
	return string(r.Raw()) + "\n" + printDiags(r.Diags)
}

func drawTargets(t *rapid.T) (tree.Map, []string) {
	m := tree.Map{
		"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": poolHead + "spec: {maxSize: 1}\n",
		"other/kustomization.yaml": "resources: [a.yaml]\n", "other/a.yaml": configMap,
		"real/deep/kustomization.yaml": "resources: [a.yaml]\n", "real/deep/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: deep}\n",
		"link": "symlink:real/deep", "plain/a.yaml": configMap, "part/kustomization.yaml": "kind: Component\ncommonAnnotations: {a: b}\n",
	}
	bases := []string{"../../base", "../../other", "../../link", "../../real/deep", "../../missing", "../../link2"}
	targets := []string{"plain"}
	for i := range rapid.IntRange(3, 6).Draw(t, "overlays") {
		dir := fmt.Sprintf("overlays/o%d", i)
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(bases), 1, 2, rapid.ID[string]).Draw(t, "bases")
		m[dir+"/kustomization.yaml"] = fmt.Sprintf("resources: [%s]\nnamePrefix: o%d-\nconfigMapGenerator: [{name: g, files: [f.txt]}]\n", strings.Join(chosen, ", "), i)
		m[dir+"/f.txt"] = "x"
		if rapid.Bool().Draw(t, "part") {
			m[dir+"/kustomization.yaml"] += "components: [../../part]\n"
		}
		targets = append(targets, dir)
	}
	return m, targets
}

// commitOn changes a tree as a commit may: files and links appear, change, move and
// vanish, and so do directories.
func commitOn(t *rapid.T, m tree.Map) tree.Map {
	next := maps.Clone(m)
	free := func(p string) bool { // no file where a directory is wanted
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if _, ok := next[d]; ok {
				return false
			}
		}
		_, err := next.Lookup(p)
		return err != nil
	}
	put := func(p, text string) {
		if _, ok := next[p]; ok || free(p) {
			next[p] = text
		}
	}
	for range rapid.IntRange(1, 3).Draw(t, "edits") {
		all := slices.Sorted(maps.Keys(next))
		if len(all) == 0 {
			return next
		}
		p := rapid.SampledFrom(all).Draw(t, "path")
		dir := path.Dir(p)
		switch rapid.IntRange(0, 8).Draw(t, "edit") {
		case 0:
			delete(next, p)
		case 1:
			if !strings.HasPrefix(next[p], "symlink:") {
				next[p] += "\n# changed\n"
			}
		case 2:
			put(path.Join(dir, rapid.SampledFrom([]string{"b.yaml", "kustomization.yml", "Kustomization", "readme.md", "z.yml"}).Draw(t, "name")), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n")
		case 3:
			text := next[p]
			delete(next, p)
			put(path.Join(dir, "moved-"+path.Base(p)), text)
		case 4:
			put(rapid.SampledFrom([]string{"link", "link2", "missing", "base", "new"}).Draw(t, "link"), "symlink:"+rapid.SampledFrom([]string{"other", "real/deep", "real", "base", "nowhere", "../out", "link"}).Draw(t, "to"))
		case 5: // a directory moves away, and a link takes its place
			for q := range maps.Clone(next) {
				if rest, ok := strings.CutPrefix(q, "other/"); ok {
					next["other2/"+rest] = next[q]
					delete(next, q)
				}
			}
			put("other", "symlink:other2")
		case 6:
			put("missing/kustomization.yaml", "resources: []\nnamePrefix: m\n")
		case 7:
			next["unrelated/"+fmt.Sprint(len(next))] = "x"
		case 8:
			if k := dir + "/kustomization.yaml"; next[k] != "" {
				next[k] += "commonAnnotations: {edited: \"1\"}\n"
			}
		}
	}
	return next
}

// After any commit, the targets whose read set is the same have the same result,
// the others are exactly those of which something that was looked up changed, and
// what is rendered anew is what a full rendering gives.
func TestIncrementalIsFull(t *testing.T) {
	rendered, kept := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m, targets := drawTargets(t)
		type last struct {
			result *kust.Result
			asked  watched
		}
		have := map[string]last{}
		draw := func(target string, m tree.Map) last {
			w := watched{m, map[string]string{}}
			r, err := kust.Build(context.Background(), w, target, kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return last{r, w}
		}
		for _, target := range targets {
			have[target] = draw(target, m)
		}
		for range rapid.IntRange(1, 4).Draw(t, "commits") {
			next := commitOn(t, m)
			for _, target := range targets {
				was := have[target]
				same, err := was.result.Reads.Same(next)
				if err != nil {
					t.Fatal(err)
				}
				if want := was.asked.changed(next); want == same {
					t.Fatalf("%s: something that was looked up changed: %v, rendered anew: %v\n%s", target, want, !same, diff(m, next))
				}
				full := draw(target, next)
				if same {
					kept++
					if a, b := printed(was.result), printed(full.result); a != b {
						t.Fatalf("%s: kept\n%s\nbut a full rendering gives\n%s\n%s", target, a, b, diff(m, next))
					}
					if was.result.Reads.Digest() != full.result.Reads.Digest() {
						t.Fatalf("%s: kept, but the digest of what is read differs", target)
					}
					continue
				}
				rendered++
				have[target] = full
			}
			m = next
		}
	})
	if rendered == 0 || kept == 0 {
		t.Errorf("%d targets were rendered anew and %d kept: the edits say nothing", rendered, kept)
	}
}

// diff lists the paths that differ between two trees.
func diff(a, b tree.Map) string {
	var out []string
	for p := range a {
		if text, ok := b[p]; !ok || text != a[p] {
			out = append(out, fmt.Sprintf("%s: %q -> %q", p, a[p], text))
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			out = append(out, fmt.Sprintf("%s: new %q", p, b[p]))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
