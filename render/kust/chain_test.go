package kust_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

// printChain is a chain as "how place [by place] value" lines.
func printChain(steps []kust.ValueChange) []string {
	var out []string
	for _, s := range steps {
		line := string(s.How)
		if s.Known() {
			line += " " + s.String()
		}
		if s.By != nil {
			line += " by " + s.By.String()
		}
		if s.Component {
			line += " (component)"
		}
		if s.Value != nil {
			line += fmt.Sprintf(" %q", *s.Value)
		}
		out = append(out, line)
	}
	return out
}

func TestChain(t *testing.T) {
	m := tree.Map{
		"base/kustomization.yaml": "resources: [pool.yaml, machine.yaml]\nconfigurations: [names.yaml]\n",
		"base/names.yaml":         "nameReference:\n- kind: AWSMachinePool\n  group: infrastructure.cluster.x-k8s.io\n  fieldSpecs:\n  - {path: spec/template/spec/infrastructureRef/name, kind: MachinePool}\n",
		"base/machine.yaml":       "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: web}\nspec:\n  replicas: 2\n  template: {spec: {infrastructureRef: {name: web, kind: AWSMachinePool, apiVersion: infrastructure.cluster.x-k8s.io/v1beta2}}}\n",
		"base/pool.yaml":          poolHead + "spec:\n  maxSize: 3\n  minSize: 1\n  zones: [a, b]\n  type: ${TYPE}\n  tags: {x: base}\n",
		"spot/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- path: spot.yaml\n  target: {kind: AWSMachinePool}\n",
		"spot/spot.yaml":          "- op: replace\n  path: /spec/maxSize\n  value: 5\n- op: add\n  path: /spec/price\n  value: \"0.1\"\n",
		"mid/kustomization.yaml":  "resources: [../base]\ncomponents: [../spot]\nnamePrefix: mid-\nlabels:\n- pairs: {team: web}\n",
		"top/kustomization.yaml": "resources: [../mid]\nnameSuffix: -top\nnamespace: prod\ncommonLabels: {team: other}\npatches:\n- path: size.yaml\n" +
			"configMapGenerator:\n- name: settings\n  literals: [ZONE=z9]\n" +
			"replacements:\n- source: {kind: MachinePool, fieldPath: spec.replicas}\n  targets:\n  - select: {kind: AWSMachinePool}\n    fieldPaths: [spec.minSize]\n" +
			"- source: {kind: ConfigMap, fieldPath: data.ZONE}\n  targets:\n  - select: {kind: AWSMachinePool}\n    fieldPaths: [spec.zones.0]\n",
		"top/size.yaml": strings.Replace(poolHead, "web", "mid-web", 1) + "spec:\n  maxSize: 5\n  zones: [c]\n  tags: {y: \"${TYPE}\"}\n",
	}
	r := mustBuild(t, m, "top", kust.Options{Vars: map[string]string{"TYPE": "m6i.large"}})
	var pool, machine intent.ObjectRef
	for _, o := range r.Objects {
		switch o.Ref.Kind {
		case "AWSMachinePool":
			pool = o.Ref
		case "MachinePool":
			machine = o.Ref
		}
	}
	for _, c := range []struct {
		ref  intent.ObjectRef
		path string
		want []string
	}{
		{pool, "spec.maxSize", []string{`base base/pool.yaml:5:12 "3"`, `json-patch spot/spot.yaml:3:10 by spot/kustomization.yaml:4:3 (component) "5"`, `patch top/size.yaml:5:12 by top/kustomization.yaml:6:3 "5"`}},
		{pool, "spec.price", []string{`json-patch spot/spot.yaml:6:10 by spot/kustomization.yaml:4:3 (component) "0.1"`}},
		{pool, "spec.minSize", []string{`base base/pool.yaml:6:12 "1"`, `replacement base/machine.yaml:5:13 by top/kustomization.yaml:11:3 "2"`}},
		{pool, "spec.zones[0]", []string{`base base/pool.yaml:7:11 "a"`, `patch top/size.yaml:6:11 by top/kustomization.yaml:6:3 "c"`, `replacement top/kustomization.yaml:9:14 by top/kustomization.yaml:15:3 "z9"`}},
		{pool, "spec.type", []string{`base base/pool.yaml:8:9 "${TYPE}"`, `variable base/pool.yaml:8:9 "m6i.large"`}},
		{pool, "spec.tags.x", []string{`base base/pool.yaml:9:13 "base"`}},
		{pool, "spec.tags.y", []string{`patch top/size.yaml:7:13 by top/kustomization.yaml:6:3 "${TYPE}"`, `variable top/size.yaml:7:13 "m6i.large"`}},
		{pool, "metadata.name", []string{`base base/pool.yaml:3:18 "web"`, `name-prefix mid/kustomization.yaml:3:13 "mid-web"`, `name-suffix top/kustomization.yaml:2:13 "mid-web-top"`}},
		{pool, "metadata.namespace", []string{`namespace top/kustomization.yaml:3:12 "prod"`}},
		{pool, "metadata.labels.team", []string{`label mid/kustomization.yaml:5:17 "web"`, `label top/kustomization.yaml:4:22 "other"`}},
		{machine, "spec.template.spec.infrastructureRef.name", []string{`base base/machine.yaml:6:47 "web"`, `name-prefix mid/kustomization.yaml:3:13 "mid-web"`, `name-suffix top/kustomization.yaml:2:13 "mid-web-top"`}},
	} {
		p, err := intent.ParsePath(c.path)
		if err != nil {
			t.Fatal(err)
		}
		chain, ok := r.Chain(c.ref, p)
		if d := cmp.Diff(c.want, printChain(chain)); d != "" || !ok {
			t.Errorf("%s (%v): %s", c.path, ok, d)
		}
	}
	for _, path := range []intent.Path{{"spec", "missing"}, {"spec", "zones"}} {
		if chain, ok := r.Chain(pool, path); ok {
			t.Errorf("%s has the chain %v", path, chain)
		}
	}
}

// weir cannot look below a patch by leaving out something that the next patch needs.
func TestChainThatCannotBeTold(t *testing.T) {
	m := tree.Map{
		"pool.yaml": poolHead + "spec: {}\n",
		"kustomization.yaml": "resources: [pool.yaml]\npatches:\n- target: {kind: AWSMachinePool}\n  patch: |\n    - op: add\n      path: /spec/a\n      value: 1\n" +
			"    - op: replace\n      path: /spec/a\n      value: 2\n    - op: move\n      from: /spec/a\n      path: /spec/b\n",
	}
	r := mustBuild(t, m, ".", kust.Options{})
	chain, _ := r.Chain(r.Objects[0].Ref, intent.Path{"spec", "b"})
	want := []string{`unknown`, `json-patch kustomization.yaml:7:14 "1"`, `json-patch kustomization.yaml:10:14 "2"`}
	if d := cmp.Diff(want, printChain(chain)); d != "" {
		t.Error(d)
	}
}
