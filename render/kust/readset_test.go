package kust_test

import (
	"context"
	"maps"
	"testing"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

func TestReadSet(t *testing.T) {
	start := tree.Map{
		"o/kustomization.yaml":        "resources: [../b, ../l]\nconfigMapGenerator: [{name: g, files: [f.txt]}]\n",
		"o/f.txt":                     "x",
		"b/kustomization.yaml":        "resources: [a.yaml]\n",
		"b/a.yaml":                    configMap,
		"l":                           "symlink:real/dir",
		"real/dir/c.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"real/kustomization.yml":      "resources: []\n",
		"real/dir/kustomization.yaml": "resources: [c.yaml]\n",
		"plain/a.yaml":                configMap,
		"unrelated/x":                 "y",
	}
	edit := func(change func(m tree.Map)) tree.Map {
		m := maps.Clone(start)
		change(m)
		return m
	}
	move := func(m tree.Map, from, to string) { m[to] = m[from]; delete(m, from) }
	for _, c := range []struct {
		name, path string
		next       tree.Map
		same       bool
	}{
		{"nothing", "o", start, true},
		{"an unrelated file", "o", edit(func(m tree.Map) { m["unrelated/x"] = "z" }), true},
		{"an unrelated sibling", "o", edit(func(m tree.Map) { m["b/z.yaml"] = "z" }), true},
		{"a base's file", "o", edit(func(m tree.Map) { m["b/a.yaml"] += "data: {a: b}\n" }), false},
		{"a generator's file", "o", edit(func(m tree.Map) { m["o/f.txt"] = "z" }), false},
		{"the overlay", "o", edit(func(m tree.Map) { m["o/kustomization.yaml"] += "namePrefix: x\n" }), false},
		{"a second kustomization", "o", edit(func(m tree.Map) { m["b/Kustomization"] = "" }), false},
		{"a file removed", "o", edit(func(m tree.Map) { delete(m, "b/a.yaml") }), false},
		{"a link retargeted", "o", edit(func(m tree.Map) { m["l"] = "symlink:real"; m["real/x"] = "" }), false},
		{"a directory becomes a link", "o", edit(func(m tree.Map) {
			move(m, "b/a.yaml", "b2/a.yaml")
			move(m, "b/kustomization.yaml", "b2/kustomization.yaml")
			m["b"] = "symlink:b2"
		}), false},
		{"a file in a plain directory", "plain", edit(func(m tree.Map) { m["plain/b.yaml"] = configMap }), false},
		{"a text in a plain directory", "plain", edit(func(m tree.Map) { m["plain/b.txt"] = "" }), true},
		{"a kustomization in a plain directory", "plain", edit(func(m tree.Map) { m["plain/kustomization.yml"] = "" }), false},
		{"a sibling of one file", "plain/a.yaml", edit(func(m tree.Map) { m["plain/b.yaml"] = configMap }), true},
		{"a missing path appears", "nowhere/at/all", edit(func(m tree.Map) { m["nowhere/at/all/a.yaml"] = configMap }), false},
		{"a missing path's parent becomes a link", "nowhere/dir", edit(func(m tree.Map) { m["nowhere"] = "symlink:real" }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := kust.Build(context.Background(), start, c.path, kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			same, err := r.Reads.Same(c.next)
			if err != nil || same != c.same {
				t.Errorf("same %v (%v), want %v; read %q", same, err, c.same, r.Reads.Paths())
			}
			again, err := kust.Build(context.Background(), c.next, c.path, kust.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if equal := again.Reads.Digest() == r.Reads.Digest(); equal != c.same {
				t.Errorf("equal digests %v, want %v", equal, c.same)
			}
			if string(again.Raw()) != string(r.Raw()) && c.same {
				t.Error("the build changed though its reads did not")
			}
		})
	}
	r, err := kust.Build(context.Background(), start, "o", kust.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reads.Same(failing{start, "look b/a.yaml"}); err == nil {
		t.Error("a tree that cannot be read was compared")
	}
}
