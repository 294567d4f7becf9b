package kust_test

import (
	"context"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
)

func anyObject(intent.ObjectRef) bool { return true }

// A build with a proof answers as the build does that it is of, and says so where it
// cannot: also where a reference to a renamed object makes the marked build another one,
// and where the proof is of other files.
func TestProofProperty(t *testing.T) {
	proven := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawStack(t)
		const user = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: user}\nspec: {template: {spec: {volumes: [{name: v, configMap: {name: settings}}]}}}\n"
		s.tree["base/pool.yaml"] += user
		s.tree["base/kustomization.yaml"] += "configMapGenerator: [{name: settings, literals: [a=b]}]\n"
		r, err := kust.Build(context.Background(), s.tree, s.top, kust.Options{})
		if err != nil || len(r.Objects) != 3 {
			t.Fatalf("%v %s\n%v", err, printDiags(r.Diags), s.tree)
		}
		proof := r.Proof(anyObject)
		if rapid.Bool().Draw(t, "other files") {
			s.tree["base/pool.yaml"] = poolHead + "spec: {nested: {zones: [x, y], a: 7, b: 7, c: 7, d: 7, e: 7, f: 7}}\n" + user
			if r, err = kust.Build(context.Background(), s.tree, s.top, kust.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		marked, err := kust.Build(context.Background(), s.tree, s.top, kust.Options{Proof: proof})
		if err != nil {
			t.Fatal(err)
		}
		check := func(when string, all bool) {
			for _, o := range r.Objects {
				eachScalar(o.Node, nil, func(p intent.Path, _ *yaml.Node) {
					for _, p := range []intent.Path{p, p[:len(p)-1], p.Join("nowhere")} {
						want, known := r.Origin(o.Ref, p)
						got, ok, sure := marked.Known(o.Ref, p)
						if sure && (ok != known || got != want) || all && !sure {
							t.Fatalf("%s, %s %s: %v %v %v, want %v %v\n%v", when, o.Ref, p, got, ok, sure, want, known, s.tree)
						}
						if sure && ok && !all {
							proven++
						}
					}
				})
			}
		}
		check("marked alone", false)
		marked.RunPlain()
		check("settled", true)
	})
	if proven == 0 {
		t.Error("no marked build was sure of anything")
	}
}
