package render

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/sops/sopstest"
)

// The pieces of a secret that attacks take out of it: a short one, one that looks like
// a word, one of digits, and one of punctuation.
var secretPieces = []string{"Qz", "woodpecker", "90817", "!@^~"}

// secretText is made of the pieces, with lines, names and colons between.
const secretText = "A=Qz:woodpecker\nB=90817\nC=!@^~\n"

// attackPool has fields for all that attacks write to.
const attackPool = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: web}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: web, annotations: {note: "one-two-three"}}
spec:
  minSize: 1
  maxSize: 2
  additionalTags: {team: none, other: a-b-c}
  awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-0123456789abcdef0}}
`

// replacing is a kustomization with replacements, each as source, its options, target
// field and the target's options.
func replacing(head string, list ...string) string {
	out := head + "replacements:\n"
	for _, r := range list {
		f := strings.Split(r, " > ")
		options := func(s string) string {
			_, o, ok := strings.Cut(s, " by ")
			if !ok {
				return ""
			}
			return ", options: " + o
		}
		place := func(s string) (object, path string) {
			s, _, _ = strings.Cut(s, " by ")
			object, path, _ = strings.Cut(s, "/")
			return object, path
		}
		from, path := place(f[0])
		to, field := place(f[1])
		out += fmt.Sprintf("- source: {kind: %s, fieldPath: %s%s}\n  targets: [{select: {kind: %s}, fieldPaths: [%q]%s}]\n", from, path, options(f[0]), to, field, options(f[1]))
	}
	return out
}

const tag = "AWSMachinePool/spec.additionalTags.team"

func attacks(t *testing.T, k sopstest.Key) map[string]map[string]string {
	secretObject := sopstest.Secret(t, k, "s", "value", secretText)
	field := func(fields ...sopstest.Field) string { return sopstest.YAML(t, k, fields...) }
	plain := func(path, v string) sopstest.Field { return sopstest.Field{Path: path, Value: v, Plain: true} }
	patch := func(kind, apiVersion string, fields ...sopstest.Field) string {
		return field(append([]sopstest.Field{plain("apiVersion", apiVersion), plain("kind", kind), plain("metadata.name", "web")}, fields...)...)
	}
	const group, infra = "cluster.x-k8s.io/v1beta1", "infrastructure.cluster.x-k8s.io/v1beta2"
	envs := "resources: [pool.yaml]\nconfigMapGenerator: [{name: c, envs: [s.bin], options: {disableNameSuffixHash: true}}]\n"
	files := "resources: [pool.yaml]\nconfigMapGenerator: [{name: c, files: [all=s.bin], options: {disableNameSuffixHash: true}}]\n"
	secretEnvs := strings.Replace(envs, "configMap", "secret", 1)
	withSecret := "resources: [pool.yaml, s.yaml]\n"
	binary := sopstest.Binary(t, k, secretText)
	json := sopstest.Binary(t, k, `{"a": {"Qz": "woodpecker"}, "b": [90817, "!@^~", true]}`)
	scratch := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: scratch}\ndata: {one: \"x-y-z\", two: \"x\"}\n"
	cut := "{delimiter: \":\", index: 1}"
	return map[string]map[string]string{
		"a whole value":                   {"kustomization.yaml": replacing(withSecret, "Secret/stringData.value > "+tag), "s.yaml": secretObject},
		"a delimiter of the source":       {"kustomization.yaml": replacing(withSecret, "Secret/stringData.value by "+cut+" > "+tag), "s.yaml": secretObject},
		"a letter as a delimiter":         {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by {delimiter: "e", index: 1} > `+tag), "s.yaml": secretObject},
		"lines":                           {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by {delimiter: "\n", index: 1} > `+tag), "s.yaml": secretObject},
		"between the lines":               {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by {delimiter: "=", index: 3} > `+tag), "s.yaml": secretObject},
		"a delimiter of the target":       {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value > AWSMachinePool/spec.additionalTags.other by {delimiter: "-", index: 1}`), "s.yaml": secretObject},
		"before a target":                 {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > AWSMachinePool/spec.additionalTags.other by {delimiter: "-", index: -1}`), "s.yaml": secretObject},
		"what a target leaves":            {"kustomization.yaml": replacing(withSecret, "Secret/stringData.value > "+tag, `Cluster/metadata.name > `+tag+` by {delimiter: ":", index: 0}`), "s.yaml": secretObject},
		"two cuts over a third object":    {"pool.yaml": attackPool + scratch, "kustomization.yaml": replacing(withSecret, `Secret/stringData.value by {delimiter: "\n", index: 0} > ConfigMap/data.one`, "ConfigMap/data.one by "+cut+" > "+tag), "s.yaml": secretObject},
		"base64 of a value":               {"kustomization.yaml": replacing(secretEnvs, "Secret/data.B > "+tag), "s.bin": binary},
		"a piece of base64":               {"kustomization.yaml": replacing(strings.ReplaceAll(secretEnvs, "envs: [s.bin]", "files: [all=s.bin]"), `Secret/data.all by {delimiter: "c", index: 1} > `+tag), "s.bin": binary},
		"variables of a file":             {"kustomization.yaml": replacing(envs, "ConfigMap/data.B > "+tag), "s.bin": binary},
		"a short variable":                {"kustomization.yaml": replacing(envs, "ConfigMap/data.C > "+tag), "s.bin": binary},
		"one of the names":                {"kustomization.yaml": replacing(envs, "ConfigMap/data > AWSMachinePool/spec.additionalTags"), "s.bin": sopstest.Binary(t, k, "woodpecker=none\nnone=none\n")},
		"a dotenv file":                   {"kustomization.yaml": replacing(strings.Replace(envs, "s.bin", "s.env", 1), "ConfigMap/data.B > "+tag), "s.env": sopstest.Dotenv(t, k, sopstest.Field{Path: "B", Value: "Qz"})},
		"a file":                          {"kustomization.yaml": replacing(files, `ConfigMap/data.all by {delimiter: "\n", index: 2} > `+tag), "s.bin": binary},
		"JSON in a string":                {"kustomization.yaml": replacing(files, "ConfigMap/data.all > AWSMachinePool/metadata.annotations.note", "Cluster/metadata.name > AWSMachinePool/metadata.annotations.note.a.Qz"), "s.bin": json},
		"JSON at its quotes":              {"kustomization.yaml": replacing(files, `ConfigMap/data.all by {delimiter: "\"", index: 5} > `+tag), "s.bin": json},
		"a member's name in JSON":         {"kustomization.yaml": replacing(files, `ConfigMap/data.all by {delimiter: "\"", index: 3} > `+tag), "s.bin": json},
		"an image's tag":                  {"kustomization.yaml": replacing(withSecret+"configurations: [c.yaml]\nimages: [{name: \"[a-zA-Z=]+\", newName: x}]\n", `Secret/stringData.value by {delimiter: "\n", index: 0} > `+tag), "c.yaml": "images: [{path: spec/additionalTags/team}]\n", "s.yaml": secretObject},
		"an image's tag in an outer one":  {"kustomization.yaml": "resources: [in]\nconfigurations: [c.yaml]\nimages: [{name: \"[a-zA-Z=]+\", newName: x}]\n", "c.yaml": "images: [{path: spec/additionalTags/team}]\n", "in/kustomization.yaml": replacing(withSecret, `Secret/stringData.value by {delimiter: "\n", index: 0} > `+tag), "in/pool.yaml": attackPool, "in/s.yaml": secretObject},
		"a hash that kustomize fills in":  {"kustomization.yaml": "resources: [pool.yaml]\nconfigurations: [names.yaml]\nsecretGenerator: [{name: boot, files: [value=s.bin]}]\n", "names.yaml": nameReference, "pool.yaml": strings.Replace(attackPool, `dataSecretName: ""`, "dataSecretName: boot", 1), "s.bin": binary},
		"a name":                          {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > MachinePool/metadata.name`), "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:woodpecker:x")},
		"a namespace":                     {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > MachinePool/metadata.namespace by {create: true}`), "pool.yaml": strings.Replace(attackPool, "kind: MachinePool\nmetadata: {name: web}", "kind: MachinePool\nmetadata: {name: web, namespace: default}", 1), "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:woodpecker:x")},
		"a kind":                          {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > MachinePool/kind`), "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:MachinePool:x")},
		"a label":                         {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > MachinePool/metadata.labels.x`), "pool.yaml": strings.Replace(attackPool, "kind: MachinePool\nmetadata: {name: web}", "kind: MachinePool\nmetadata: {name: web, labels: {x: y}}", 1), "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:woodpecker:x")},
		"what a selector finds":           {"kustomization.yaml": "resources: [in]\npatches: [{target: {labelSelector: x=Qz}, patch: '[{\"op\": \"replace\", \"path\": \"/metadata/labels/x\", \"value\": \"found\"}]'}, {target: {labelSelector: x=found}, patch: '[{\"op\": \"replace\", \"path\": \"/metadata/labels/x\", \"value\": \"y\"}]'}]\n", "in/kustomization.yaml": replacing(withSecret, "Secret/stringData.value > AWSMachinePool/metadata.labels.x"), "in/pool.yaml": strings.Replace(attackPool, "kind: AWSMachinePool\nmetadata: {", "kind: AWSMachinePool\nmetadata: {labels: {x: y}, ", 1), "in/s.yaml": sopstest.Secret(t, k, "s", "value", "Qz")},
		"an operation that tests":         {"kustomization.yaml": "resources: [pool.yaml, s.yaml]\npatches: [{target: {kind: Secret}, patch: '[{\"op\": \"test\", \"path\": \"/stringData/value\", \"value\": \"Qz\"}]'}]\n", "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz")},
		"a number in a patch":             {"kustomization.yaml": "resources: [pool.yaml]\npatches: [{path: p.yaml}]\n", "p.yaml": patch("MachinePool", group, sopstest.Field{Path: "spec.replicas", Value: "2", Type: "int"})},
		"a boolean in a patch":            {"kustomization.yaml": "resources: [pool.yaml]\npatches: [{path: p.yaml}]\n", "p.yaml": patch("AWSMachinePool", infra, sopstest.Field{Path: "spec.capacityRebalance", Value: "True", Type: "bool"})},
		"a deletion in a patch":           {"kustomization.yaml": "resources: [pool.yaml]\npatches: [{path: p.yaml}]\n", "p.yaml": patch("AWSMachinePool", infra, sopstest.Field{Path: "$patch", Value: "delete"}), "pool.yaml": attackPool},
		"a transformer in a file":         {"kustomization.yaml": "resources: [pool.yaml]\ntransformers: [p.yaml]\n", "p.yaml": field(plain("apiVersion", "builtin"), plain("kind", "PrefixTransformer"), plain("metadata.name", "p"), sopstest.Field{Path: "prefix", Value: "woodpecker-"}, plain("fieldSpecs.[].path", "metadata/name"))},
		"a kustomization in part":         {"kustomization.yaml": field(plain("resources.[]", "pool.yaml"), sopstest.Field{Path: "namePrefix", Value: "woodpecker-"})},
		"a variable by a name":            {"kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > `+tag+` by {delimiter: "_", index: 1}`), "pool.yaml": strings.Replace(attackPool, "team: none", `team: "${A_x_B}"`, 1), "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:woodpecker:x")},
		"a message of kustomize":          {"pool.yaml": attackPool + scratch, "kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > ConfigMap/data.one`, `ConfigMap/data.one by {delimiter: "-", index: 9} > ConfigMap/data.two`), "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:woodpecker:x")},
		"a message about user data":       {"pool.yaml": strings.Replace(attackPool, `dataSecretName: ""`, "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: k}", 1) + "---\napiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: k}\nspec: {format: x}\n", "kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > KubeadmConfig/spec.format`), "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:woodpecker:x")},
		"a message about a file":          {"kustomization.yaml": field(plain("kind", "Kustomization"), sopstest.Field{Path: "resources.[]", Value: "woodpecker.yaml"})},
		"the name of what weir passes by": {"pool.yaml": attackPool + scratch, "kustomization.yaml": replacing(withSecret, `Secret/stringData.value by `+cut+` > ConfigMap/kind`, "Secret/stringData.value > "+tag), "s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:woodpecker:x")},
	}
}

// secretCodes are those of findings about secrets, and about a build that cannot look into one.
var secretCodes = []string{"secret-in-plain-field", "secret-in-name", "secret-cut", "build-failed", "wrong-type", "missing-file"}

// TestNoDerivedForm takes secrets apart in every way that kustomize has. No piece of
// one is in what can be shown, and no pool is left that holds one.
func TestNoDerivedForm(t *testing.T) {
	k := sopstest.Age(t)
	for name, files := range attacks(t, k) {
		t.Run(name, func(t *testing.T) {
			files = maps.Clone(files)
			if files["pool.yaml"] == "" {
				files["pool.yaml"] = attackPool
			}
			r := rendered(t, files, Options{Decrypter: decrypter(t, k)})
			if !r.Diags.HasErrors() || len(r.Set.Pools) != 0 {
				t.Errorf("%d pools: %v", len(r.Set.Pools), r.Diags)
			}
			if !slices.ContainsFunc(r.Diags, func(d diag.Diagnostic) bool { return slices.Contains(secretCodes, d.Code) }) {
				t.Errorf("%v", r.Diags)
			}
			text, _ := r.ShownYAML()
			shown := strings.ReplaceAll(fmt.Sprintf("%+v %+v\n%s", r.Diags, r.Set, text), "note.a.Qz", "") // a path that the kustomization names
			for _, piece := range secretPieces {
				for _, form := range []string{piece, base64.StdEncoding.EncodeToString([]byte(piece))} {
					if i := strings.Index(shown, form); i >= 0 {
						t.Errorf("%q is shown: …%s…", form, shown[max(0, i-100):min(len(shown), i+60)])
					}
				}
			}
			for _, d := range r.Diags {
				if d.Severity == diag.Error && !d.Known() {
					t.Errorf("no place: %v", d)
				}
			}
		})
	}
}

// TestSecretsInUserData lets secrets go to where they belong, alone and beside other text,
// and has other values taken apart beside them.
func TestSecretsInUserData(t *testing.T) {
	k := sopstest.Age(t)
	kubeadm := strings.Replace(attackPool, `dataSecretName: ""`, "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: k}", 1) + `---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: k}
spec:
  format: "${FORMAT:-cloud-config}"
  files:
  - {path: /a, content: "x"}
  - {path: /b, content: "a-b-c", permissions: "${MODE:-0600}"}
  - {path: /c, contentFrom: {secret: {name: gen, key: all}}}
  joinConfiguration:
    discovery: {bootstrapToken: {token: "${TOKEN:-abcdef.0123456789abcdef}", apiServerEndpoint: "${ENDPOINT:-10.0.0.1:6443}", unsafeSkipCAVerification: true}}
`
	names := "nameReference: [{kind: Secret, version: v1, fieldSpecs: [{kind: KubeadmConfig, path: spec/files/contentFrom/secret/name}]}]\n"
	head := "resources: [pool.yaml, s.yaml]\nconfigurations: [names.yaml]\nsecretGenerator: [{name: gen, files: [all=s.bin]}]\n"
	secrets := map[string]string{"TOKEN": "uvwxyz.9876543210uvwxyz", "ENDPOINT": "192.168.250.3:8443", "MODE": "0640", "FORMAT": "cloud-config"}
	for name, tc := range map[string]struct {
		list  []string
		value string
		want  string // in the user data
	}{
		"whole":                  {[]string{"Secret/stringData.value > KubeadmConfig/spec.files.0.content"}, secretText, secretText},
		"beside other text":      {[]string{`Secret/stringData.value > KubeadmConfig/spec.files.1.content by {delimiter: "-", index: 1}`}, "pass word", "a-pass word-c"},
		"others are taken apart": {[]string{`AWSMachinePool/metadata.annotations.note by {delimiter: "-", index: 1} > ` + tag}, secretText, ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(replacing(head, tc.list...), "{kind: Secret,", "{kind: Secret, name: s,")
			text = strings.ReplaceAll(text, "select: {kind: Secret}", "select: {kind: Secret, name: s}")
			files := map[string]string{"kustomization.yaml": text, "pool.yaml": kubeadm, "names.yaml": names, "s.yaml": sopstest.Secret(t, k, "s", "value", tc.value), "s.bin": sopstest.Binary(t, k, "of the generator")}
			for _, vars := range []map[string]string{nil, secrets} {
				var secretVars []string
				for name := range vars {
					secretVars = append(secretVars, name)
				}
				r := rendered(t, files, Options{Decrypter: decrypter(t, k), Vars: vars, SecretVars: secretVars})
				if r.Diags.HasErrors() || len(r.Set.Pools) != 1 {
					t.Fatalf("%v", r.Diags)
				}
				if data := r.Set.Pools[0].LaunchTemplate.UserData.Text; !strings.Contains(data, "of the generator") && !strings.Contains(data, base64.StdEncoding.EncodeToString([]byte("of the generator"))) {
					t.Errorf("what is generated did not get there: %s", data)
				}
				text, _ := r.ShownYAML()
				shown := string(text)
				if tc.want != "" && strings.Contains(shown, tc.want) || strings.Contains(shown, "uvwxyz") {
					t.Errorf("shown:\n%s", shown)
				}
				if !strings.Contains(string(r.YAML()), strings.Split(strings.ReplaceAll(tc.want, `"`, `\"`), "\n")[0]) && !strings.Contains(string(r.YAML()), strings.Split(tc.want, "\n")[0]) {
					t.Errorf("%q is not where it belongs:\n%s", tc.want, r.YAML())
				}
			}
		})
	}
}

// TestHashOfASecret tells what to do about a name that kustomize makes.
func TestHashOfASecret(t *testing.T) {
	k := sopstest.Age(t)
	files := attacks(t, k)["a hash that kustomize fills in"]
	r := rendered(t, files, Options{Decrypter: decrypter(t, k)})
	if len(r.Diags) != 1 || !strings.Contains(r.Diags[0].Detail, "disableNameSuffixHash: true") || !strings.Contains(r.Diags[0].Summary, `"boot"`) {
		t.Errorf("%+v", r.Diags)
	}
	files["kustomization.yaml"] += "generatorOptions: {disableNameSuffixHash: true}\n"
	if r := rendered(t, files, Options{Decrypter: decrypter(t, k)}); r.Diags.HasErrors() || len(r.Set.Pools) != 1 {
		t.Errorf("%v", r.Diags)
	}
	// A hash over what is in Git in plain text tells nothing.
	files = map[string]string{"kustomization.yaml": "resources: [pool.yaml]\nconfigurations: [names.yaml]\nsecretGenerator: [{name: boot, literals: [value=plain]}]\n", "names.yaml": nameReference, "pool.yaml": files["pool.yaml"]}
	if r := rendered(t, files, Options{Decrypter: decrypter(t, k), Vars: map[string]string{"X": "secret"}, SecretVars: []string{"X"}}); r.Diags.HasErrors() || len(r.Set.Pools) != 1 {
		t.Errorf("%v", r.Diags)
	}
}

// TestExplainHidesPieces has the field's values on the way to its last one hidden, where
// they are what was cut off a secret.
func TestExplainHidesPieces(t *testing.T) {
	k := sopstest.Age(t)
	files := map[string]string{
		"kustomization.yaml":    "resources: [in]\npatches: [{target: {kind: AWSMachinePool}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/additionalTags/team\", \"value\": \"last\"}]'}]\n",
		"in/kustomization.yaml": replacing("resources: [pool.yaml, s.yaml]\n", "Secret/stringData.value > "+tag),
		"in/pool.yaml":          attackPool, "in/s.yaml": sopstest.Secret(t, k, "s", "value", "Qz:woodpecker:x"),
	}
	r := rendered(t, files, Options{Decrypter: decrypter(t, k)})
	if r.Diags.HasErrors() || len(r.Set.Pools) != 1 {
		t.Fatalf("%v", r.Diags)
	}
	fields, err := r.Fields(&r.Set.Pools[0])
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, f := range fields {
		for _, s := range r.Chain(f) {
			if steps++; s.Value != nil && strings.Contains(*s.Value, "woodpecker") {
				t.Errorf("%s shows %q", f.Path, *s.Value)
			}
		}
	}
	if steps < 5 {
		t.Errorf("%d steps", steps)
	}
}
