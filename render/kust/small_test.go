package kust_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// Small builds small trees and returns ErrLarge for others, which build without it.
func TestSmallBuilds(t *testing.T) {
	data := func(bytes int) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {a: " + strings.Repeat("x", bytes) + "}\n"
	}
	for name, c := range map[string]struct {
		tree  tree.Map
		small bool
	}{
		"one object":                {overlayOf("", configMaps(1)), true},
		"an overlay of 100 objects": {overlayOf("namePrefix: a-\n", configMaps(100)), true},
		"many nodes in files":       {overlayOf("", configMaps(3000)), false},
		"many nodes by a base":      {chain(3, "labels: [{pairs: {a: b, c: d, e: f, g: h, i: j, k: l}}]\n", configMaps(1400)), false},
		"many bytes":                {overlayOf("", data(1_000_000)), true},
		"more bytes":                {tree.Map{"kustomization.yaml": "resources: [a.yaml, b.yaml, c.yaml]\n", "a.yaml": data(900_000), "b.yaml": strings.ReplaceAll(data(900_000), "big", "b"), "c.yaml": strings.ReplaceAll(data(900_000), "big", "c")}, false},
		"a bomb":                    {overlayOf("", "a: "+aliasBomb()), true},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := kust.Build(context.Background(), c.tree, ".", kust.Options{Small: true})
			if c.small && errors.Is(err, kust.ErrLarge) && time.Since(began) > 2*time.Second {
				return // a small build ends after two seconds, which a busy machine may take for any
			}
			if errors.Is(err, kust.ErrLarge) == c.small || err != nil && !errors.Is(err, kust.ErrLarge) {
				t.Errorf("small: %v", err)
			}
		})
	}
	for _, small := range []bool{false, true} {
		asked := 0
		grow := func() bool { asked++; return true }
		// Its file has more nodes than a small build may have, and it more time.
		r, err := kust.Build(context.Background(), overlayOf("", configMaps(3000)), ".", kust.Options{Small: small, Grow: grow})
		if err != nil || len(r.Objects) != 3000 || small != (asked == 1) {
			t.Errorf("a large one: asked %d times: %v", asked, err)
		}
	}
}

// A build that goes on as a large one has the time of one, if it asks in its own time.
func TestGrownBuildsHaveTheirTime(t *testing.T) {
	const over = 2100 * time.Millisecond // what a small build may take
	t.Run("in time", func(t *testing.T) {
		t.Parallel()
		m := tree.Map{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": configMaps(3000), "b.yaml": poolHead}
		r, err := kust.Build(context.Background(), slow{m, "b.yaml", over}, ".", kust.Options{Small: true, Grow: func() bool { return true }})
		if err != nil || len(r.Objects) != 3001 {
			t.Error(err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		asked := 0
		_, err := kust.Build(context.Background(), overlayOf("", configMaps(3000)), ".", kust.Options{Small: true, Grow: func() bool { asked++; return asked > 1 }})
		if !errors.Is(err, kust.ErrLarge) || asked != 1 {
			t.Errorf("asked %d times, it is to begin anew: %v", asked, err)
		}
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		_, err := kust.Build(context.Background(), overlayOf("", configMaps(3000)), ".", kust.Options{Small: true, Grow: func() bool { time.Sleep(over); return true }})
		if !errors.Is(err, kust.ErrLarge) {
			t.Errorf("it is to begin anew: %v", err)
		}
	})
}

// slow is a tree that takes long to read one file.
type slow struct {
	tree.Map
	at string
	by time.Duration
}

func (s slow) ReadFile(p string) ([]byte, error) {
	if p == s.at {
		time.Sleep(s.by)
	}
	return s.Map.ReadFile(p)
}

// The number of nodes is a limit of whoever builds, who is told how far it is passed.
func TestNodesAreLimited(t *testing.T) {
	for name, c := range map[string]struct {
		tree tree.Map
		want string
	}{
		"in files":  {overlayOf("", configMaps(300)), "the files up to this one have more than 1000 YAML nodes; limits.nodes allows 1000"},
		"by a base": {overlayOf("labels: [{pairs: {a: b, c: d, e: f, g: h}}]\n", configMaps(54)), "the build results in more than 1000 YAML nodes; limits.nodes allows 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := kust.Build(context.Background(), c.tree, ".", kust.Options{Limits: kust.Limits{Nodes: 1000}})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Diags) != 1 || r.Diags[0].Code != "too-large" || !strings.Contains(r.Diags[0].Summary, c.want) || !strings.Contains(r.Diags[0].Detail, "raise limits.nodes") {
				t.Errorf("%v", r.Diags)
			}
			if r, err := kust.Build(context.Background(), c.tree, ".", kust.Options{Limits: kust.Limits{Nodes: 100_000}}); err != nil || len(r.Objects) == 0 {
				t.Errorf("with a higher limit: %v, %v", r.Diags, err)
			}
		})
	}
}

// A build that is large and slow succeeds: only its own limits end it.
func TestLargeIsNoFault(t *testing.T) {
	for name, m := range map[string]tree.Map{
		"many keys":          {"kustomization.yaml": "configMapGenerator:\n- name: a\n  literals:\n" + numbered(4500, "  - a%d=b\n")},
		"many bases":         chain(60, "namePrefix: abcdefgh-\n", configMaps(3)),
		"a text in many":     overlayOf("replacements:\n- source: {kind: ConfigMap, name: big, fieldPath: data.a}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.b], options: {create: true}}]\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {a: "+strings.Repeat("x", 40_000)+"}\n"+configMaps(100)),
		"fields that double": overlayOf("replacements:\n"+strings.Repeat("- {source: {kind: ConfigMap, fieldPath: data.a}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a], options: {delimiter: x, index: 99}}]}\n", 10), configMap+"data: {a: b}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := kust.Build(context.Background(), m, ".", kust.Options{}); err != nil || len(r.Diags) > 0 || len(r.Objects) == 0 {
				t.Errorf("%v, %v", err, r.Diags)
			}
		})
	}
}
