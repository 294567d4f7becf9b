package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/sops/sopstest"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// The canaries: one for each way in which a secret comes in, each with
// characters that JSON, HTML and URLs write in another way.
const (
	canaryVariable  = "canary1<&>Variable+x"    // in a file that is marked as secret
	canaryPlain     = "canary2<&>Plain+x"       // the same, used outside user data
	canarySOPS      = "canary3<&>SOPS+x"        // in a Secret that SOPS has encrypted
	canaryBinary    = "canary4<&>Binary+x"      // in a file for a generator
	canaryDotenv    = "canary5<&>Dotenv+x"      // in a file of variables for a generator
	canarySecret    = "canary6<&>Secret+x"      // in a Secret in plain text
	canaryFile      = "canary7<&>File+x"        // in a file that a KubeadmConfig writes
	canaryToken     = "canary.8tokencanary8tok" // with which nodes join
	canaryForge     = "canary9ForgeToken"
	canaryPassword  = "canary10SourcePassword"
	canaryUserinfo  = "canary11Userinfo"
	canaryBadFormat = "canary12<&>Format+x" // a secret variable where a word is wanted
	canaryWebhook   = "canary13WebhookSecret"
	canaryNotify    = "canary14NotifySecret"
	canaryAddress   = "canary15NotifyAddress" // in the address that events are sent to
)

var canaries = []string{
	canaryVariable, canaryPlain, canarySOPS, canaryBinary, canaryDotenv, canarySecret, canaryFile, canaryToken, canaryForge, canaryPassword, canaryUserinfo, canaryBadFormat,
	canaryWebhook, canaryNotify, canaryAddress,
}

// shownForms are the forms in which a canary may be in an output.
func shownForms(c string) map[string]string {
	js, _ := json.Marshal(c)
	forms := map[string]string{
		"raw": c, "query": url.QueryEscape(c), "path": url.PathEscape(c), "json": strings.Trim(string(js), `"`), "html": html.EscapeString(c),
	}
	for before := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + c))
		forms[fmt.Sprint("base64 after ", before)] = text[4 : len(text)-4]
	}
	return forms
}

// sing fails the test for each canary in an output.
func sing(t *testing.T, where, output string, but ...string) {
	t.Helper()
	for _, c := range canaries {
		if slices.Contains(but, c) {
			continue
		}
		for form, text := range shownForms(c) {
			if i := strings.Index(output, text); i >= 0 {
				t.Errorf("%s shows %s (%s): …%s…", where, c, form, output[max(0, i-120):min(len(output), i+len(text)+60)])
				break
			}
		}
	}
}

// canaryWorld is everything around weir, with a canary in each input.
type canaryWorld struct {
	repo    *sourcetest.Repo
	aws     *awsemu.Server
	url     string
	dir     string
	key     sopstest.Key
	keyFile string
	forge   *echoForge
}

func newCanaryWorld(t *testing.T) *canaryWorld {
	t.Helper()
	emu, err := awsemu.New(awsemu.Options{Timings: quickTimings()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emu)
	t.Cleanup(server.Close)
	w := &canaryWorld{repo: sourcetest.New(t), aws: emu, url: server.URL, dir: t.TempDir(), key: sopstest.Age(t), forge: newEchoForge(t)}
	w.keyFile = w.key.IdentityFile(t)
	w.repo.RequireAuth("weir", canaryPassword)
	for name, text := range map[string]string{
		"forge-token": canaryForge, "password": canaryPassword, "webhook-secret": canaryWebhook, "notify-secret": canaryNotify,
		"secrets.yaml": fmt.Sprintf("SECRET: %q\nLEAK: %q\nFORMAT: %q\n", canaryVariable, canaryPlain, canaryBadFormat),
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// canaryPool is a pool that boots from a Secret or a KubeadmConfig.
func canaryPool(name, boot, tag string) string {
	return fmt.Sprintf(`apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: %[1]s}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {%[2]s}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: %[1]s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: %[1]s}
spec:
  minSize: 1
  maxSize: 2
  additionalTags: {team: "%[3]s"}
  awsLaunchTemplate: {instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}}
`, name, boot, tag)
}

func kubeadm(name, format string) string {
	return fmt.Sprintf(`apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: %s}
spec:
  format: %s
  preKubeadmCommands: ["echo ${SECRET}"]
  files:
  - {path: /a, content: %q}
  - {path: /b, contentFrom: {secret: {name: plain, key: b}}}
  joinConfiguration:
    discovery: {bootstrapToken: {token: %s, apiServerEndpoint: "10.0.0.1:6443", unsafeSkipCAVerification: true}}
`, name, format, canaryFile, canaryToken)
}

// tree is the repository's content. broken adds what cannot be applied.
func (w *canaryWorld) tree(t *testing.T, maxTag string, broken bool) map[string]string {
	pools := canaryPool("sops", "dataSecretName: sops", maxTag) + "---\n" + canaryPool("gen", "dataSecretName: gen", maxTag) + "---\n" +
		canaryPool("env", "dataSecretName: env", maxTag) + "---\n" +
		canaryPool("joins", "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: joins}", maxTag) + "---\n" + kubeadm("joins", "cloud-config")
	if broken {
		pools += "---\n" + canaryPool("leaky", `dataSecretName: ""`, "x ${LEAK}") + "---\n" +
			canaryPool("odd", "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: odd}", "x") + "---\n" + kubeadm("odd", "${FORMAT}")
	}
	return map[string]string{
		"overlays/prod/kustomization.yaml": "resources: [pools.yaml, sops.yaml, plain.yaml]\nconfigurations: [names.yaml]\n" +
			"secretGenerator: [{name: gen, files: [value=boot.sh]}, {name: env, envs: [boot.env]}]\ngeneratorOptions: {disableNameSuffixHash: true}\n",
		"overlays/prod/names.yaml": "nameReference: [{kind: Secret, version: v1, fieldSpecs: [{kind: MachinePool, path: spec/template/spec/bootstrap/dataSecretName}]}]\n",
		"overlays/prod/pools.yaml": pools,
		"overlays/prod/sops.yaml":  sopstest.Secret(t, w.key, "sops", "value", "#!/bin/bash\npassword: "+canarySOPS+"\n"),
		"overlays/prod/boot.sh":    sopstest.Binary(t, w.key, "#!/bin/bash\nTOKEN="+canaryBinary+"\n"),
		"overlays/prod/boot.env":   sopstest.Dotenv(t, w.key, sopstest.Field{Path: "value", Value: canaryDotenv}),
		"overlays/prod/plain.yaml": fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\ndata: {b: %s}\n", base64.StdEncoding.EncodeToString([]byte(canarySecret))),
	}
}

// config writes the daemon's configuration.
func (w *canaryWorld) config(t *testing.T) string {
	t.Helper()
	file := filepath.Join(w.dir, "weir.yaml")
	text := fmt.Sprintf(`apiVersion: weir.dev/v1alpha1
kind: Config
instance: fleet
stateDir: state
listen: 127.0.0.1:0
interval: 300ms
aws: {endpoint: %[1]s}
sources:
- {name: pools, url: %[2]s, ref: {branch: main}, interval: 50ms, auth: {username: weir, passwordFile: password}, proxy: ""}
forges:
- {type: gitea, url: %[3]s/platform/fleet, tokenFile: forge-token, webhookSecretFile: webhook-secret}
notify:
- {url: "%[3]s/notify?key=%[5]s", secretFile: notify-secret}
targets:
- {name: prod, path: overlays/prod, region: eu-west-1, ageKeyFiles: [%[4]q], varsFrom: [{file: secrets.yaml, secret: true}]}
`, w.url, w.repo.URL(), w.forge.url, w.keyFile, canaryAddress)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// echoForge refuses some statuses with all that it was sent, as a careless proxy does.
type echoForge struct {
	url string

	mu     sync.Mutex
	bodies strings.Builder
	n      int
}

func newEchoForge(t *testing.T) *echoForge {
	f := &echoForge{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"1.22.0"}`)) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.Method != http.MethodPost {
			_, _ = w.Write([]byte("[]"))
			return
		}
		f.bodies.Write(body)
		if f.n++; f.n%2 == 1 {
			http.Error(w, fmt.Sprintf(`{"message":"refused %s of %s"}`, r.Header.Get("Authorization"), canaryForge), http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":1,"status":"success"}`))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *echoForge) got() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies.String()
}
