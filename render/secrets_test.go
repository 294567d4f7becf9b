package render

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/sops/sopstest"
	"github.com/weir-gitops/weir/render/tree"
)

const secretPool = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web}
spec:
  clusterName: demo
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: web}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: web}
spec:
  minSize: 1
  maxSize: 2
  additionalTags: {team: "${TEAM:-none}"}
  awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-0123456789abcdef0}}
`

// nameReference has kustomize follow the name of a generated Secret.
const nameReference = "nameReference: [{kind: Secret, version: v1, fieldSpecs: [{kind: MachinePool, path: spec/template/spec/bootstrap/dataSecretName}]}]\n"

func decrypter(t *testing.T, k sopstest.Key) *sops.Decrypter {
	t.Helper()
	ids, err := sops.ParseIdentities(k.Identity)
	if err != nil {
		t.Fatal(err)
	}
	return sops.New(sops.Options{Identities: ids})
}

func rendered(t *testing.T, files map[string]string, o Options) *Result {
	t.Helper()
	r, err := Render(t.Context(), tree.Map(files), ".", o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func codes(l diag.List) string {
	var out []string
	for _, d := range l {
		if d.Severity == diag.Error {
			out = append(out, d.Code)
		}
	}
	return strings.Join(out, " ")
}

const bootText = "#!/bin/bash\necho canary-boot-text\n"

// encryptedTrees are the ways in which an encrypted file becomes user data.
func encryptedTrees(t *testing.T, k sopstest.Key) map[string]map[string]string {
	return map[string]map[string]string{
		"a resource": {
			"kustomization.yaml": "resources: [pool.yaml, boot.yaml]\n", "pool.yaml": secretPool,
			"boot.yaml": sopstest.Secret(t, k, "boot", "value", bootText),
		},
		"a resource that is encrypted whole": {
			"kustomization.yaml": "resources: [pool.yaml, boot.yaml]\n", "pool.yaml": secretPool,
			"boot.yaml": sopstest.YAML(t, k, sopstest.Field{Path: "apiVersion", Value: "v1"}, sopstest.Field{Path: "kind", Value: "Secret"}, sopstest.Field{Path: "metadata.name", Value: "boot"},
				sopstest.Field{Path: "data.value", Value: base64.StdEncoding.EncodeToString([]byte(bootText))}),
		},
		"a patch": {
			"kustomization.yaml": "resources: [pool.yaml, boot.yaml]\npatches: [{path: patch.yaml}]\n", "pool.yaml": secretPool,
			"boot.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {value: none}\n",
			"patch.yaml": sopstest.Secret(t, k, "boot", "value", bootText),
		},
		"a generator's file": {
			"kustomization.yaml": "resources: [pool.yaml]\nconfigurations: [names.yaml]\nsecretGenerator: [{name: boot, files: [value=boot.sh], options: {disableNameSuffixHash: true}}]\n", "pool.yaml": secretPool,
			"names.yaml": nameReference, "boot.sh": sopstest.Binary(t, k, bootText),
		},
		"a generator's variables": {
			"kustomization.yaml": "resources: [pool.yaml]\nconfigurations: [names.yaml]\nsecretGenerator: [{name: boot, envs: [boot.env], options: {disableNameSuffixHash: true}}]\n", "pool.yaml": secretPool,
			"names.yaml": nameReference, "boot.env": sopstest.Dotenv(t, k, sopstest.Field{Path: "value", Value: "#cloud-config canary-boot-text"}),
		},
	}
}

func TestEncryptedFiles(t *testing.T) {
	k := sopstest.Age(t)
	for name, files := range encryptedTrees(t, k) {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, files, Options{Decrypter: decrypter(t, k)})
			if codes(r.Diags) != "" || len(r.Set.Pools) != 1 || r.Secretless {
				t.Fatalf("%v", r.Diags)
			}
			text := r.Set.Pools[0].LaunchTemplate.UserData.Text
			if !strings.Contains(text, "canary-boot-text") {
				t.Errorf("user data %q", text)
			}
			if shown := r.Secrets.Finder().Redact(text); strings.Contains(shown, "canary") {
				t.Errorf("what was decrypted is not hidden: %q", shown)
			}
			none := rendered(t, files, Options{})
			if codes(none.Diags) != "sops-no-key" || len(none.Set.Pools) != 0 || !none.Diags.HasErrors() {
				t.Errorf("without a key: %v", none.Diags)
			}
			if d := none.Diags[0]; !d.Known() || d.Line == 0 || !strings.Contains(d.Summary, "age1") {
				t.Errorf("%v", d)
			}
			if strings.HasSuffix(name, "whole") {
				return // what the object is called is encrypted too
			}
			open := rendered(t, files, Options{Decrypter: sops.New(sops.Options{Placeholders: true})})
			if codes(open.Diags) != "" || !open.Secretless || len(open.Set.Pools) != 1 || open.Diags.Count(diag.Warning) == 0 {
				t.Errorf("with placeholders: %v", open.Diags)
			}
			if len(open.Set.Pools) == 1 && sops.Mentioned(open.Set.Pools[0].LaunchTemplate.UserData.Text) {
				t.Error("the user data holds ciphertext")
			}
		})
	}
}

// TestDecryptedOrigins holds positions in a decrypted file to its encrypted text.
func TestDecryptedOrigins(t *testing.T) {
	k := sopstest.Age(t)
	files := encryptedTrees(t, k)["a resource"]
	files["boot.yaml"] = sopstest.Secret(t, k, "boot", "other", "text of the other")
	r := rendered(t, files, Options{Decrypter: decrypter(t, k)})
	if codes(r.Diags) != "secret-key-not-found" {
		t.Fatalf("%v", r.Diags)
	}
	for _, o := range r.Objects {
		if o.Ref.Kind == "Secret" {
			at, ok := r.Origin(o.Ref, []string{"stringData", "other"})
			if !ok || at.File != "boot.yaml" || at.Line != 6 {
				t.Errorf("origin %s in\n%s", at, files["boot.yaml"])
			}
		}
	}
}

func TestSecretInPlainField(t *testing.T) {
	const value = "canary-Variable-1"
	files := map[string]string{"kustomization.yaml": "resources: [pool.yaml, boot.yaml]\n", "pool.yaml": secretPool,
		"boot.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: boot}\nstringData: {value: \"token ${TOKEN:-x}\"}\n"}
	for name, tc := range map[string]struct {
		vars    map[string]string
		secrets []string
		code    string
	}{
		"in user data":            {map[string]string{"TOKEN": value}, []string{"TOKEN"}, ""},
		"in a tag":                {map[string]string{"TEAM": value}, []string{"TEAM"}, "secret-in-plain-field"},
		"written by chance":       {map[string]string{"TEAM": value, "TOKEN": value}, []string{"TOKEN"}, "secret-in-plain-field"},
		"in a part of one":        {map[string]string{"TEAM": "a " + value + " b", "TOKEN": value}, []string{"TOKEN"}, "secret-in-plain-field"},
		"in base64 in one":        {map[string]string{"TEAM": base64.StdEncoding.EncodeToString([]byte(value)), "TOKEN": value}, []string{"TOKEN"}, "secret-in-plain-field"},
		"another text":            {map[string]string{"TEAM": "canary", "TOKEN": value}, []string{"TOKEN"}, ""},
		"too short to tell":       {map[string]string{"TEAM": "x", "TOKEN": "x"}, []string{"TOKEN"}, ""},
		"short, and the variable": {map[string]string{"TEAM": "x"}, []string{"TEAM"}, "secret-in-plain-field"},
		"a boolean":               {map[string]string{"TEAM": "true"}, []string{"TEAM"}, "secret-in-plain-field"},
		"empty":                   {map[string]string{"TEAM": ""}, []string{"TEAM"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, files, Options{Vars: tc.vars, SecretVars: tc.secrets})
			if codes(r.Diags) != tc.code || len(r.Set.Pools) == 0 != (tc.code != "") {
				t.Fatalf("%v, %d pools", r.Diags, len(r.Set.Pools))
			}
			if tc.code != "" && (r.Diags[0].Position != diag.Position{File: "pool.yaml", Line: 23, Column: 26}) {
				t.Errorf("at %s", r.Diags[0].Position)
			}
			if strings.Contains(fmt.Sprint(r.Diags), value) {
				t.Errorf("the value is shown: %v", r.Diags)
			}
		})
	}
}

func TestFindingsHideSecrets(t *testing.T) {
	const value = "canary-Variable-2"
	pool := strings.Replace(secretPool, "maxSize: 2", "maxSize: ${BAD}", 1)
	pool = strings.Replace(pool, "bootstrap: {dataSecretName: boot}", "bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: k}}", 1)
	pool += `---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: k}
spec:
  format: ${BAD}
  files: [{path: /a, content: x, encoding: "${BAD}"}]
`
	r := rendered(t, map[string]string{"pool.yaml": pool}, Options{Vars: map[string]string{"BAD": value}, SecretVars: []string{"BAD"}})
	if !r.Diags.HasErrors() || strings.Contains(fmt.Sprintf("%+v", r.Diags), value) {
		t.Errorf("%v", r.Diags)
	}
}

func TestCiphertextIsNoUserData(t *testing.T) {
	k := sopstest.Age(t)
	text := sopstest.Secret(t, k, "boot", "value", bootText)
	text, _, _ = strings.Cut(text, "\nsops:")
	r := rendered(t, map[string]string{"boot.yaml": text + "\n", "pool.yaml": secretPool}, Options{Decrypter: decrypter(t, k)})
	if codes(r.Diags) != "sops-ciphertext" || len(r.Set.Pools) != 0 {
		t.Errorf("%v, %d pools", r.Diags, len(r.Set.Pools))
	}
}
