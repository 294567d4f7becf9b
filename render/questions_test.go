package render

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/slot"
	"github.com/weir-gitops/weir/render/sops/sopstest"
)

// The secret, and others that it might be: of another length, and of another form. Overlays
// that ask questions name the first one.
const guessed = "hunter2"

var unguessed = []string{"another-text-that-is-much-longer-than-the-first", "7", "{\"a\": [1]}", "true", "A=b\nC: d\n"}

// questions are overlays that somebody writes to find out whether a secret is the guessed
// one, or how it begins, or how long it is. s.yaml holds it, in the member value.
func questions() map[string]map[string]string {
	const head = "resources: [pool.yaml, s.yaml]\n"
	in := func(list ...string) string { return replacing(head, list...) }
	patch := func(target, patch string) string {
		return fmt.Sprintf("patches: [{target: %s, patch: %q}]\n", target, patch)
	}
	with := func(old, text string) string { return strings.Replace(attackPool, old, text, 1) }
	kubeadm := strings.Replace(attackPool, `dataSecretName: ""`, "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: k}", 1) + `---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: k}
spec:
  preKubeadmCommands: ["a-b-c"]
  files: [{path: /a, content: "x-y-z"}, {path: /b, content: "x", permissions: "0600", contentFrom: null}]
  users: [{name: hunter2}, {name: x}]
  joinConfiguration:
    nodeRegistration: {kubeletExtraArgs: {hunter2: "1"}}
    discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "10.0.0.1:6443", unsafeSkipCAVerification: true}}
`
	scratch := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: scratch, labels: {x: y}, annotations: {x: y}}\ndata: {one: \"x-y-z\", two: \"x\"}\n"
	found := `[{"op": "replace", "path": "/spec/maxSize", "value": 9}]`
	toScratch := "Secret/stringData.value > ConfigMap/metadata."
	inner := func(kustomization, outer string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [in]\n" + outer, "in/kustomization.yaml": kustomization, "in/pool.yaml": attackPool + scratch}
	}
	generated := func(kind, options string) string {
		return "resources: [pool.yaml, s.yaml]\n" + kind + ": [{name: gen, files: [value=s.bin]" + options + "}]\n"
	}
	return map[string]map[string]string{
		"a name":                           {"kustomization.yaml": in(toScratch + "name"), "pool.yaml": attackPool + scratch},
		"a name of a pool":                 {"kustomization.yaml": in("Secret/stringData.value > MachinePool/metadata.name")},
		"a namespace":                      {"kustomization.yaml": in("Secret/stringData.value > AWSMachinePool/metadata.namespace by {create: true}")},
		"a label":                          {"kustomization.yaml": in(toScratch + "labels.x"), "pool.yaml": attackPool + scratch},
		"an annotation":                    {"kustomization.yaml": in("Secret/stringData.value > AWSMachinePool/metadata.annotations.note")},
		"a part of an annotation":          {"kustomization.yaml": in(`Secret/stringData.value > AWSMachinePool/metadata.annotations.note by {delimiter: "-", index: 1}`)},
		"a kind":                           {"kustomization.yaml": in("Secret/stringData.value > ConfigMap/kind"), "pool.yaml": attackPool + scratch},
		"a tag":                            {"kustomization.yaml": in("Secret/stringData.value > " + tag)},
		"a first letter":                   {"kustomization.yaml": in(`Secret/stringData.value by {delimiter: "unter", index: 0} > ` + tag)},
		"a letter":                         {"kustomization.yaml": in(`Secret/stringData.value by {delimiter: "h", index: 1} > ` + tag)},
		"whether a delimiter is there":     {"pool.yaml": kubeadm, "kustomization.yaml": in(`Secret/stringData.value by {delimiter: "2", index: 0} > KubeadmConfig/spec.files.0.content`)},
		"a letter of base64":               {"kustomization.yaml": replacing(generated("secretGenerator", ", options: {disableNameSuffixHash: true}"), `Secret/data.value by {delimiter: "a", index: 0} > `+tag)},
		"a patch of a name":                inner(replacing("resources: [pool.yaml, ../s.yaml]\n", toScratch+"name"), patch("{kind: ConfigMap, name: hunter2}", `[{"op": "add", "path": "/data/three", "value": "x"}]`)),
		"a patch of a beginning of a name": inner(replacing("resources: [pool.yaml, ../s.yaml]\n", "Secret/stringData.value > AWSMachinePool/metadata.name"), patch("{name: \"h.*\"}", found)),
		"a selector of labels":             inner(replacing("resources: [pool.yaml, ../s.yaml]\n", "Secret/stringData.value > AWSMachinePool/metadata.labels.x by {create: true}"), patch("{labelSelector: x=hunter2}", found)),
		"a selector of annotations":        inner(replacing("resources: [pool.yaml, ../s.yaml]\n", "Secret/stringData.value > AWSMachinePool/metadata.annotations.note"), patch("{annotationSelector: note=hunter2}", found)),
		"an operation that tests":          {"kustomization.yaml": head + patch("{kind: Secret}", `[{"op": "test", "path": "/stringData/value", "value": "hunter2"}]`)},
		"a test beside another operation":  {"kustomization.yaml": head + patch("{kind: AWSMachinePool}", `[{"op": "test", "path": "/spec/additionalTags/team", "value": "hunter2"}, {"op": "replace", "path": "/spec/maxSize", "value": 9}]`)},
		"a key by a replacement of all":    {"kustomization.yaml": replacing("resources: [pool.yaml]\nconfigMapGenerator: [{name: c, envs: [s.bin], options: {disableNameSuffixHash: true}}]\n", "ConfigMap/data > AWSMachinePool/spec.additionalTags")},
		"a member of a list":               {"pool.yaml": kubeadm, "kustomization.yaml": in("Secret/stringData.value > KubeadmConfig/spec.users.1.name", "Cluster/metadata.name > KubeadmConfig/spec.users.[name=hunter2].name")},
		"a hash of a ConfigMap":            {"kustomization.yaml": generated("configMapGenerator", "")},
		"a hash that a field refers to":    {"kustomization.yaml": generated("secretGenerator", "") + "configurations: [names.yaml]\n", "names.yaml": nameReference, "pool.yaml": with(`dataSecretName: ""`, "dataSecretName: gen")},
		"a generator's merge":              {"kustomization.yaml": generated("configMapGenerator", ", options: {disableNameSuffixHash: true}}, {name: gen, behavior: merge, literals: [value=hunter2]")},
		"a prefix":                         {"kustomization.yaml": "resources: [pool.yaml]\ntransformers: [p.yaml]\n"},
		"a resource by its name":           {"kustomization.yaml": "resources: [s.bin, pool.yaml]\n"},
		"an order":                         {"kustomization.yaml": in(toScratch+"name") + "sortOptions: {order: legacy}\n", "pool.yaml": attackPool + scratch + strings.Replace(scratch, "name: scratch", "name: hunter1", 1)},
		"an object twice":                  {"kustomization.yaml": in("Secret/stringData.value > ConfigMap/metadata.namespace by {create: true}"), "pool.yaml": attackPool + scratch + strings.Replace(scratch, "name: scratch", "name: scratch, namespace: hunter2", 1)},
		"a vars reference":                 {"kustomization.yaml": head + "vars: [{name: S, objref: {apiVersion: v1, kind: Secret, name: s}, fieldref: {fieldpath: stringData.value}}]\n", "pool.yaml": with("team: none", "team: $(S)")},
		"a variable of weir's":             {"kustomization.yaml": in("Secret/stringData.value > " + tag), "pool.yaml": with("team: none", "team: \"${hunter2:-x}\"")},
		"a size":                           {"pool.yaml": strings.Replace(kubeadm, "x-y-z", "x-y-"+strings.Repeat("0123456789 abc", 1160), 1), "kustomization.yaml": in(`Secret/stringData.value > KubeadmConfig/spec.files.0.content by {delimiter: "-", index: 1}`)},
		"a compressed size":                {"pool.yaml": strings.Replace(kubeadm, "x-y-z", "x-y-hunter2"+strings.ReplaceAll(noise(12_150), "-", ""), 1), "kustomization.yaml": in(`Secret/stringData.value > KubeadmConfig/spec.files.0.content by {delimiter: "-", index: 1}`)},
		"a mask":                           {"kustomization.yaml": head, "pool.yaml": strings.Replace(with("team: none", "team: hunter2"), "maxSize: 2", "maxSize: hunter2", 1)},
		"a name of a Secret":               {"pool.yaml": strings.Replace(kubeadm, "contentFrom: null", "contentFrom: {secret: {name: x, key: value}}", 1) + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: hunter2}\nstringData: {value: x}\n", "kustomization.yaml": strings.ReplaceAll(in("Secret/stringData.value > KubeadmConfig/spec.files.1.contentFrom.secret.name"), "{kind: Secret,", "{kind: Secret, name: s,")},
		"a value beside others":            {"pool.yaml": kubeadm, "kustomization.yaml": in(`Secret/stringData.value > KubeadmConfig/spec.files.1.permissions by {delimiter: "6", index: 1}`)},
		"an image":                         {"kustomization.yaml": in("Secret/stringData.value > "+tag) + "configurations: [c.yaml]\nimages: [{name: hunter2, newName: x}]\n", "c.yaml": "images: [{path: spec/additionalTags/team}]\n"},
		"user data, which is legal":        {"pool.yaml": kubeadm, "kustomization.yaml": in("Secret/stringData.value > KubeadmConfig/spec.files.0.content")},
	}
}

// noise is a text of a length that can hardly be compressed.
func noise(length int) string {
	var out []byte
	for state := uint32(1); len(out) < length; {
		state = state*1664525 + 1013904223
		out = append(out, byte(state>>24))
	}
	return base64.RawStdEncoding.EncodeToString(out)
}

// TestSecretsAnswerNoQuestions has each overlay built with the guessed secret and with
// others, and wants the same of all that can be shown.
func TestSecretsAnswerNoQuestions(t *testing.T) {
	k := sopstest.Age(t)
	for name, files := range questions() {
		for _, class := range []slot.Class{slot.Followed, slot.Proposed} {
			if strings.HasSuffix(name, " size") && class == slot.Followed {
				continue // whoever can merge can see whether AWS takes it
			}
			t.Run(fmt.Sprint(name, " ", class), func(t *testing.T) {
				answer := func(text string) string {
					files := maps.Clone(files)
					if files["pool.yaml"] == "" && files["in/pool.yaml"] == "" {
						files["pool.yaml"] = attackPool
					}
					files["s.yaml"], files["s.bin"] = sopstest.Secret(t, k, "s", "value", text), sopstest.Binary(t, k, text)
					if strings.Contains(files["kustomization.yaml"], "p.yaml]") {
						files["p.yaml"] = sopstest.YAML(t, k, sopstest.Field{Path: "apiVersion", Value: "builtin", Plain: true}, sopstest.Field{Path: "kind", Value: "PrefixTransformer", Plain: true},
							sopstest.Field{Path: "metadata.name", Value: "p", Plain: true}, sopstest.Field{Path: "prefix", Value: text}, sopstest.Field{Path: "fieldSpecs.[].path", Value: "metadata/name", Plain: true})
					}
					if strings.Contains(files["in/kustomization.yaml"], "../s.yaml") { // a base may not reach out
						files["in/s.yaml"], files["in/kustomization.yaml"] = files["s.yaml"], strings.Replace(files["in/kustomization.yaml"], "../s.yaml", "s.yaml", 1)
					}
					return shownOf(t, rendered(t, files, Options{Decrypter: decrypter(t, k), For: slot.Caller{Class: class}}))
				}
				want := answer(guessed)
				for _, text := range unguessed {
					if got := answer(text); got != want {
						t.Errorf("%q and %q differ:\n%s", guessed, text, cmp.Diff(want, got))
					}
				}
				if legal := strings.HasSuffix(name, "legal"); legal != !strings.Contains(want, "error") && !harmless(name) {
					t.Errorf("shown:\n%s", want)
				}
			})
		}
	}
}

// harmless are questions that get no error, and no answer.
func harmless(name string) bool {
	return slices.Contains([]string{"a hash of a ConfigMap", "a generator's merge", "a member of a list"}, name) || strings.HasSuffix(name, "size")
}

// shownOf is all that is shown of a render.
func shownOf(t *testing.T, r *Result) string {
	t.Helper()
	set, err := json.MarshalIndent(r.Set, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := r.ShownYAML()
	out := fmt.Sprintf("%v\n%s\n%s\n", r.Diags, set, text)
	for _, d := range r.Diags {
		out += fmt.Sprintf("%+v\n", d)
		if d.Severity == diag.Error && !d.Known() {
			t.Errorf("no place: %v", d)
		}
	}
	for i := range r.Set.Pools {
		fields, err := r.Fields(&r.Set.Pools[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fields {
			out += fmt.Sprintln(f.Path, f.Value, f.Source, f.Origin, f.Note)
		}
	}
	return out
}

// A pool that is refused because of a secret is not a pool that nobody wants: it stands among
// the broken ones, with file and line. Others are planned.
func TestRefusedPoolsStayVisible(t *testing.T) {
	k := sopstest.Age(t)
	other := strings.ReplaceAll(strings.SplitN(attackPool, "---\n", 2)[1], "name: web", "name: other")
	for name, tc := range map[string]struct{ kustomization, file string }{
		"a tag":     {"resources: [pool.yaml, other.yaml, s.yaml]\nreplacements: [{source: {kind: Secret, fieldPath: stringData.value}, targets: [{select: {kind: AWSMachinePool, name: web}, fieldPaths: [spec.additionalTags.team]}]}]\n", "s.yaml"},
		"user data": {"resources: [pool.yaml, other.yaml, k.yaml]\n", "k.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"kustomization.yaml": tc.kustomization, "pool.yaml": attackPool, "other.yaml": other, "s.yaml": sopstest.Secret(t, k, "s", "value", guessed)}
			if tc.file == "k.yaml" {
				files["pool.yaml"] = strings.Replace(attackPool, `dataSecretName: ""`, "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: k}", 1)
				files["k.yaml"] = sopstest.YAML(t, k, sopstest.Field{Path: "apiVersion", Value: "bootstrap.cluster.x-k8s.io/v1beta1", Plain: true}, sopstest.Field{Path: "kind", Value: "KubeadmConfig", Plain: true},
					sopstest.Field{Path: "metadata.name", Value: "k", Plain: true}, sopstest.Field{Path: "spec.format", Value: guessed})
			}
			r := rendered(t, files, Options{Decrypter: decrypter(t, k)})
			broken := r.Set.Broken()
			if len(r.Set.Pools) != 1 || r.Set.Pools[0].Key.Name != "other" || len(broken) != 1 || broken[0].Key.Name != "web" {
				t.Fatalf("%+v\n%v", r.Set, r.Diags)
			}
			if f := broken[0].Fault; f.Severity != diag.Error || f.File != tc.file || f.Line == 0 || !strings.HasPrefix(f.Code, "secret-") {
				t.Errorf("%+v", f)
			}
		})
	}
}
