package kust_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/tree"
)

var substitutionVars = map[string]string{
	"N": "3", "S": "text", "EMPTY": "", "T": "true", "NULL": "null", "F": "1.5", "OCT": "010", "DATE": "2026-01-01", "YES": "yes",
	"COLON": "a: b", "LINES": "a\nb: c\n- d", "HASH": "a # b", "QUOTE": `"'`, "REF": "${S}", "ALIAS": "*x", "BRACE": "{a: b}",
	"HEX": "0x1F", "EXP": "1e3", "ON": "on", "OCT12": "0o10", "UNDER": "1_000", "INF": ".inf", "TILDE": "~", "SPACE": " 3 ", "MINUS": "-3", "VERSION": "1.30", "CAPITAL": "TRUE", "BIG": "123456789012345678901234567890",
}

func TestSubstitution(t *testing.T) {
	for _, c := range []struct {
		in    string // the YAML of the field x
		value string
		tag   string
		code  string // of the only diagnostic in a strict object
	}{
		{"${N}", "3", "!!int", ""},
		{"'${N}'", "3", "!!str", ""},
		{`"${N}"`, "3", "!!str", ""},
		{"a${N}", "a3", "!!str", ""},
		{"1${N}", "13", "!!int", ""},
		{"${N}${N}", "33", "!!int", ""},
		{"${T}", "true", "!!bool", ""},
		{"'${T}'", "true", "!!str", ""},
		{"${F}", "1.5", "!!float", ""},
		{"${NULL}", "null", "!!null", ""},
		{"${EMPTY}", "", "!!null", ""},
		{"'${EMPTY}'", "", "!!str", ""},
		{"${DATE}", "2026-01-01", "!!str", ""},
		{"${YES}", "yes", "!!str", ""},
		// Types as kustomize takes a plain scalar: numbers as in YAML 1.1, words as in
		// YAML 1.2.
		{"${HEX}", "0x1F", "!!int", ""},
		{"${OCT}", "010", "!!int", ""},
		{"${OCT12}", "0o10", "!!int", ""},
		{"${EXP}", "1e3", "!!float", ""},
		{"${UNDER}", "1_000", "!!int", ""},
		{"${INF}", ".inf", "!!float", ""},
		{"${MINUS}", "-3", "!!int", ""},
		{"${VERSION}", "1.30", "!!float", ""},
		{"v${VERSION}", "v1.30", "!!str", ""},
		{"'${VERSION}'", "1.30", "!!str", ""},
		{"${BIG}", "123456789012345678901234567890", "!!float", ""},
		{"${ON}", "on", "!!str", ""},
		{"${CAPITAL}", "TRUE", "!!bool", ""},
		{"${TILDE}", "~", "!!null", ""},
		{"${SPACE}", " 3 ", "!!str", ""},
		{"${COLON}", "a: b", "!!str", ""},
		{"${LINES}", "a\nb: c\n- d", "!!str", ""},
		{"${HASH}", "a # b", "!!str", ""},
		{"${QUOTE}", `"'`, "!!str", ""},
		{"${ALIAS}", "*x", "!!str", ""},
		{"${BRACE}", "{a: b}", "!!str", ""},
		{"${REF}", "${S}", "!!str", ""},
		{"${U:-7}", "7", "!!int", ""},
		{"${U:=7}", "7", "!!int", ""},
		{"'${U:-7}'", "7", "!!str", ""},
		{"${EMPTY:-d}", "d", "!!str", ""},
		{"${S:-d}", "text", "!!str", ""},
		{"${U:-}", "", "!!null", ""},
		{"${U:-a:-b=c}", "a:-b=c", "!!str", ""},
		{"$${S}", "${S}", "!!str", ""},
		{"$${S} ${S}", "${S} text", "!!str", ""},
		{"$$${S}", "$${S}", "!!str", ""},
		{"$${U:-x}", "${U:-x}", "!!str", ""},
		{"$S $(S) {{ S }} $ $$", "$S $(S) {{ S }} $ $$", "!!str", ""},
		{"'$'", "$", "!!str", ""},
		{"${U}", "${U}", "!!str", "unset-variable"},
		{"${U} ${S}", "${U} text", "!!str", "unset-variable"},
		{"${S/a/b}", "${S/a/b}", "!!str", "bad-variable"},
		{"'${#S}'", "${#S}", "!!str", "bad-variable"},
		{"${S^^}", "${S^^}", "!!str", "bad-variable"},
		{"${S:-${N}}", "${S:-${N}}", "!!str", "bad-variable"},
		{"${S", "${S", "!!str", "bad-variable"},
		{"${}", "${}", "!!str", "bad-variable"},
		{"${1}", "${1}", "!!str", "bad-variable"},
		{"${S-d}", "${S-d}", "!!str", "bad-variable"},
		// Other forms that envsubst documents, none of which clusterctl's manifests
		// have: refused rather than half understood.
		{"${S=d}", "${S=d}", "!!str", "bad-variable"},
		{"'${S:?message}'", "${S:?message}", "!!str", "bad-variable"},
		{"${S:+alternative}", "${S:+alternative}", "!!str", "bad-variable"},
		{"${S:0:2}", "${S:0:2}", "!!str", "bad-variable"},
		{"'${S#prefix}'", "${S#prefix}", "!!str", "bad-variable"},
		{"${S%suffix}", "${S%suffix}", "!!str", "bad-variable"},
		{"${S,,}", "${S,,}", "!!str", "bad-variable"},
		{"${S//a/b}", "${S//a/b}", "!!str", "bad-variable"},
		{"${!S}", "${!S}", "!!str", "bad-variable"},
		{"${S.T}", "${S.T}", "!!str", "bad-variable"},
		{"${ S }", "${ S }", "!!str", "bad-variable"},
		{"a}${N}{b", "a}3{b", "!!str", ""},
		{"${U:-a}b}", "ab}", "!!str", ""},
		{"${U:-$S}", "$S", "!!str", ""},
		{"${U:- }x", " x", "!!str", ""},
		{"|-\n    a ${N}\n    b $${N}", "a 3\nb ${N}", "!!str", ""},
		{"|-\n    ${N}", "3", "!!str", ""},
		{">-\n    ${N}", "3", "!!str", ""},
	} {
		t.Run(c.in, func(t *testing.T) {
			m := tree.Map{"o.yaml": configMap + "x: " + c.in + "\n"}
			for _, strict := range []bool{false, true} {
				r, err := kust.Build(context.Background(), m, "o.yaml", kust.Options{
					Vars: substitutionVars, Strict: func(intent.ObjectRef) bool { return strict },
				})
				if err != nil {
					t.Fatal(err)
				}
				if strict && c.code != "" {
					if len(r.Diags) != 1 || r.Diags[0].Code != c.code || r.Diags[0].Position.String() != "o.yaml:4:4" || r.Diags[0].Field != "x" {
						t.Errorf("want %s at o.yaml:4:4, got\n%s", c.code, printDiags(r.Diags))
					}
					continue
				}
				if len(r.Objects) != 1 || len(r.Diags) > 0 {
					t.Fatalf("strict %v: %s", strict, printDiags(r.Diags))
				}
				got := find(r.Objects[0].Node, "x")
				if got.Value != c.value || got.ShortTag() != c.tag {
					t.Errorf("strict %v: got %q %s, want %q %s", strict, got.Value, got.ShortTag(), c.value, c.tag)
				}
				// Printed and read again, the value is the same one scalar.
				out := r.YAML()
				var again yaml.Node
				if err := yaml.Unmarshal(out, &again); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if back := find(again.Content[0], "x"); c.tag == "!!str" && (back.Value != c.value || back.ShortTag() != c.tag) {
					t.Errorf("printed as %q %s\n%s", back.Value, back.ShortTag(), out)
				}
			}
		})
	}
}

func find(n *yaml.Node, keys ...string) *yaml.Node {
	for _, k := range keys {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == k {
				n = n.Content[i+1]
				break
			}
		}
	}
	return n
}

// Style must survive what kustomize does to an object on the way.
func TestTypesSurviveTheBuild(t *testing.T) {
	object := "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata:\n  name: a\n  labels: {q: \"${N}\"}\n  annotations:\n    p: \"${N}\"\n    x.y/z: '${N}'\n    n: ${N}\nspec:\n  plain: ${N}\n  quoted: \"${N}\"\n  list:\n  - ${N}\n  - '${N}'\n"
	for name, kustomization := range map[string]string{
		"base":       "",
		"merge":      "patches:\n- patch: |-\n    apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\n    kind: AWSMachinePool\n    metadata: {name: a}\n    spec: {other: 1}\n",
		"json patch": "patches:\n- target: {kind: AWSMachinePool}\n  patch: |-\n    - {op: add, path: /spec/other, value: 1}\n",
		"set by json patch": "patches:\n- target: {kind: AWSMachinePool}\n  patch: |-\n    - op: replace\n      path: /spec/plain\n      value: ${N}\n" +
			"    - op: replace\n      path: /spec/quoted\n      value: \"${N}\"\n",
		"replacement": "replacements:\n- source: {kind: AWSMachinePool, fieldPath: spec.plain}\n  targets:\n  - select: {kind: AWSMachinePool}\n    fieldPaths: [spec.copy]\n    options: {create: true}\n",
	} {
		t.Run(name, func(t *testing.T) {
			m := tree.Map{"kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n" + kustomization, "a.yaml": object}
			r, err := kust.Build(context.Background(), m, ".", kust.Options{Vars: substitutionVars})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Objects) != 1 {
				t.Fatal(printDiags(r.Diags))
			}
			spec := find(r.Objects[0].Node, "spec")
			got := map[string]string{
				"plain": find(spec, "plain").ShortTag(), "quoted": find(spec, "quoted").ShortTag(),
				"list0": find(spec, "list").Content[0].ShortTag(), "list1": find(spec, "list").Content[1].ShortTag(),
			}
			want := map[string]string{"plain": "!!int", "quoted": "!!str", "list0": "!!int", "list1": "!!str",
				"annotation p": "!!str", "annotation x.y/z": "!!str", "annotation n": "!!int", "label": "!!str"}
			meta := find(r.Objects[0].Node, "metadata")
			for _, key := range []string{"p", "x.y/z", "n"} {
				got["annotation "+key] = find(meta, "annotations", key).ShortTag()
			}
			got["label"] = find(meta, "labels", "q").ShortTag()
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestVariablesInKeysAndNames(t *testing.T) {
	m := tree.Map{"o.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${S}-a\n  namespace: ${S}\ndata:\n  ${S}/a: b\n  text/b: c\n"}
	r, err := kust.Build(context.Background(), m, "o.yaml", kust.Options{Vars: substitutionVars})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Objects) != 1 {
		t.Fatal(printDiags(r.Diags))
	}
	ref := intent.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "text", Name: "text-a"}
	if r.Objects[0].Ref != ref {
		t.Errorf("got ref %+v", r.Objects[0].Ref)
	}
	if at, ok := r.Origin(ref, intent.Path{"data", "text/a"}); !ok || at.String() != "o.yaml:7:11" {
		t.Errorf("origin under a substituted key: %v %v", at, ok)
	}
	m["o.yaml"] = strings.Replace(m["o.yaml"], "text/b", "text/a", 1)
	r, err = kust.Build(context.Background(), m, "o.yaml", kust.Options{Vars: substitutionVars})
	if err != nil {
		t.Fatal(err)
	}
	if !hasCode(r, "duplicate-key") {
		t.Errorf("keys that become the same: %s", printDiags(r.Diags))
	}
}

// Every unset variable is reported, with the line in a block of user data.
func TestUnsetVariablesAllAtOnce(t *testing.T) {
	m := tree.Map{
		"o/kustomization.yaml": "resources: [../b]\npatches: [{path: p.yaml}]\n",
		"b/kustomization.yaml": "resources: [a.yaml]\n",
		"b/a.yaml":             "apiVersion: v1\nkind: Strict\nmetadata: {name: a}\nspec:\n  size: ${SIZE}\n  script: |\n    #!/bin/sh\n    echo ${HOST} $${OK}\n      echo ${S} ${WORSE%x}\n---\n" + configMap + "data: {a: \"${SILENT} ${S}\"}\n",
		"o/p.yaml":             "apiVersion: v1\nkind: Strict\nmetadata: {name: a}\nspec:\n  zone: [a, \"${ZONE}\"]\n",
	}
	r, err := kust.Build(context.Background(), m, "o", kust.Options{
		Vars: substitutionVars, Strict: func(ref intent.ObjectRef) bool { return ref.Kind == "Strict" },
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range r.Diags {
		got = append(got, d.Position.String()+" "+d.Code+" "+d.Field)
		if d.Severity != diag.Error || d.Object != "Strict default/a" {
			t.Errorf("severity or object of %+v", d)
		}
	}
	want := []string{"b/a.yaml:5:9 unset-variable spec.size", "b/a.yaml:8:10 unset-variable spec.script", "b/a.yaml:9:17 bad-variable spec.script", "o/p.yaml:5:13 unset-variable spec.zone[1]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// Nothing is kept of a build with faults, where its fields come from neither.
	ref, at := intent.ObjectRef{APIVersion: "v1", Kind: "Strict", Namespace: "default", Name: "a"}, intent.Path{"spec", "size"}
	if _, ok := r.Origin(ref, at); ok {
		t.Error("a failed build has origins")
	}
	if _, ok := r.KeyOrigin(ref, at); ok {
		t.Error("a failed build has origins of keys")
	}
	if _, ok := r.Near(ref, at); ok {
		t.Error("a failed build has origins nearby")
	}
	if _, ok := r.Chain(ref, at); ok {
		t.Error("a failed build has chains")
	}
}

func TestIdentity(t *testing.T) {
	m := tree.Map{}
	for i, kind := range []string{"AWSClusterRoleIdentity", "AWSClusterStaticIdentity", "AWSClusterControllerIdentity", "AWSMachinePool"} {
		m["d/"+string(rune('a'+i))+".yaml"] = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: " + kind + "\nmetadata: {name: a}\n"
	}
	m["d/n.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"
	r, err := kust.Build(context.Background(), m, "d", kust.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range r.Objects {
		got[o.Ref.Kind] = o.Ref.Namespace
	}
	want := map[string]string{"AWSClusterRoleIdentity": "", "AWSClusterStaticIdentity": "", "AWSClusterControllerIdentity": "", "AWSMachinePool": "default", "Namespace": "", "ConfigMap": "b"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s\n%s", d, printDiags(r.Diags))
	}
	m["d/o.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${N}\"}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"3\", namespace: default}\n"
	r, err = kust.Build(context.Background(), m, "d", kust.Options{Vars: substitutionVars})
	if err != nil {
		t.Fatal(err)
	}
	if !hasCode(r, "duplicate-object") {
		t.Errorf("objects that become the same: %s", printDiags(r.Diags))
	}
}
