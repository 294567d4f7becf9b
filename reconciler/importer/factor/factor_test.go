package factor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// group is a pool of a group with what differs.
func group(name, cluster string, spec map[string]any, annotations map[string]any) Pool {
	ref := map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachinePool", "name": name}
	meta := map[string]any{"name": name}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	return Pool{Cluster: cluster, Name: name, Objects: []Object{
		{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachinePool", "metadata": map[string]any{"name": name}, "spec": map[string]any{
			"clusterName": cluster, "template": map[string]any{"spec": map[string]any{"clusterName": cluster, "bootstrap": map[string]any{"dataSecretName": ""}, "infrastructureRef": ref}}}},
		{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachinePool", "metadata": meta, "spec": spec},
	}}
}

func clustersOf(pools []Pool) (out []Cluster) {
	names := map[string]bool{}
	for _, p := range pools {
		names[p.Cluster] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, Cluster{name, []Object{{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": name}, "spec": map[string]any{}}}})
	}
	return out
}

// check builds every overlay and compares the objects with those of the pools.
func check(t interface {
	Fatalf(string, ...any)
}, pools []Pool) Repository {
	clusters := clustersOf(pools)
	r := NewRepository(clusters, pools)
	want := map[string]map[string]string{}
	add := func(to map[string]string, o Object) {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		to[roleOf(o)+" "+nameOf(o)] = strings.ReplaceAll(string(text), "$${", "${")
	}
	for _, c := range clusters {
		want["overlays/"+fileName(c.Name)] = map[string]string{}
		add(want["overlays/"+fileName(c.Name)], c.Objects[0])
	}
	for _, p := range pools {
		for _, o := range p.Objects {
			add(want["overlays/"+fileName(p.Cluster)], o)
		}
	}
	files := tree.Map{}
	for name, text := range r.Files {
		files[name] = string(text)
	}
	if len(r.Overlays) != len(clusters) {
		t.Fatalf("overlays %v", r.Overlays)
	}
	for _, dir := range r.Overlays {
		built, err := kust.Build(context.Background(), files, dir, kust.Options{})
		if err != nil || built.Diags.HasErrors() {
			t.Fatalf("%s: %v %v\n%s", dir, err, built.Diags, all(r))
		}
		got := map[string]string{}
		for _, o := range built.Objects {
			var v map[string]any
			if err := o.Node.Decode(&v); err != nil {
				t.Fatalf("%v", err)
			}
			add(got, v)
		}
		if !maps.Equal(got, want[dir]) {
			for k, v := range want[dir] {
				if got[k] != v {
					t.Fatalf("%s: %q is\n%s, want\n%s\n%s", dir, k, got[k], v, all(r))
				}
			}
			t.Fatalf("%s has more: %v", dir, slices.Sorted(maps.Keys(got)))
		}
	}
	return r
}

func all(r Repository) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		fmt.Fprintf(&b, "## %s\n%s", name, r.Files[name])
	}
	return b.String()
}

func webSpec(max int, subnet string) map[string]any {
	return map[string]any{"minSize": 1, "maxSize": max, "awsLaunchTemplate": map[string]any{}, "defaultCoolDown": "300s", "subnets": []any{map[string]any{"id": subnet}},
		"additionalTags": map[string]any{"team": "web", "cost": "1e3", "on": "yes"}}
}

func TestPoolsThatAreAlikeShareABase(t *testing.T) {
	var pools []Pool
	for _, c := range []string{"dev", "prod"} {
		for i, color := range []string{"blue", "green", "red"} {
			pools = append(pools, group(c+"-web-"+color, c, webSpec(3+i, "subnet-"+c), map[string]any{"node.k8s.aws/launch-template-name": c + "-web-" + color, "node.k8s.aws/launch-template-version": "1"}))
		}
	}
	odd := group("cache", "prod", map[string]any{"minSize": 0, "maxSize": 1, "mixedInstancesPolicy": map[string]any{"overrides": []any{map[string]any{"instanceType": "r5.large"}}},
		"awsLaunchTemplate": map[string]any{}, "healthCheckType": "ELB", "subnets": []any{map[string]any{"id": "subnet-prod"}}, "suspendProcesses": map[string]any{"all": true}, "capacityRebalance": true, "lifecycleHooks": []any{map[string]any{"name": "x"}, map[string]any{"name": "y"}, map[string]any{"name": "z"}}}, nil)
	r := check(t, append(pools, odd))
	t.Log(all(r))
}

func TestRandomFleets(t *testing.T) {
	texts := rapid.SampledFrom([]string{"a", "yes", "1e3", "0123", "$${X}", "é ü", "- x", "", "null", "~", "x: y", "#c", "a\nb\n", " lead", "true", "1.0"})
	values := []*rapid.Generator[any]{
		rapid.Map(texts, func(s string) any { return s }), rapid.Map(rapid.IntRange(0, 3), func(n int) any { return n }), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Just[any]([]any{}), rapid.Just[any](map[string]any{}), rapid.Map(texts, func(s string) any { return []any{s, map[string]any{"id": s}} }),
		rapid.Map(texts, func(s string) any { return map[string]any{"in": s, "out": map[string]any{"x": s}} }),
	}
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"web", "web-a", "web-b", "a-web", "a-web-b", "prod-web", "prod-web-1", "x", "y", "z.w", "z-w", "con", "references", "1", "2-3", "batch-1", "batch-2", "batch", "prod", "all", "web.yaml", "1e3"}), 1, 14, rapid.ID[string]).Draw(rt, "names")
		keys := []string{"one", "two", "three", "four", "yes", "0123", "x/y"}
		// A field has values of one kind, as a rule.
		rule := rapid.SliceOfN(rapid.IntRange(0, len(values)-1), len(keys), len(keys)).Draw(rt, "kinds")
		ofKind := func(k string) *rapid.Generator[any] {
			if rapid.IntRange(0, 19).Draw(rt, "rule") == 0 {
				return rapid.OneOf(values...)
			}
			return values[rule[slices.Index(keys, k)]]
		}
		var shapes []map[string]any
		for range 3 {
			shape := map[string]any{}
			for _, k := range keys {
				if rapid.Bool().Draw(rt, "has") {
					shape[k] = ofKind(k).Draw(rt, "value")
				}
			}
			shape["long"] = map[string]any{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8}
			shapes = append(shapes, shape)
		}
		var pools []Pool
		for _, name := range names {
			spec := maps.Clone(rapid.SampledFrom(shapes).Draw(rt, "shape"))
			for _, k := range keys {
				switch rapid.IntRange(0, 9).Draw(rt, "change") {
				case 0:
					delete(spec, k)
				case 1:
					spec[k] = ofKind(k).Draw(rt, "other")
				}
			}
			cluster := rapid.SampledFrom([]string{"prod", "dev"}).Draw(rt, "cluster")
			p := group(name, cluster, spec, map[string]any{"node.k8s.aws/launch-template-name": rapid.SampledFrom([]string{name, "web", "lt"}).Draw(rt, "template")})
			if rapid.Bool().Draw(rt, "options") {
				p.Objects = append(p.Objects, Object{"apiVersion": "weir.dev/v1alpha1", "kind": "PoolOptions", "metadata": map[string]any{"name": name},
					"spec": map[string]any{"poolRef": map[string]any{"kind": "AWSMachinePool", "name": name}, "autoScalingGroup": map[string]any{"x": texts.Draw(rt, "option")}}})
			}
			if rapid.IntRange(0, 5).Draw(rt, "secret") == 0 {
				p.Objects = append(p.Objects, Object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": rapid.SampledFrom([]string{name, name + "-user-data"}).Draw(rt, "called")}, "stringData": map[string]any{"value": texts.Draw(rt, "data")}})
			}
			pools = append(pools, p)
		}
		a := check(rt, pools)
		slices.Reverse(pools)
		if b := NewRepository(clustersOf(pools), pools); all(a) != all(b) {
			rt.Fatalf("the order of pools matters:\n%s\n%s", all(a), all(b))
		}
	})
}
