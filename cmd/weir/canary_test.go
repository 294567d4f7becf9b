package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/sops/sopstest"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/status/statustest"
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

// command runs weir in this process.
func (w *canaryWorld) command(t *testing.T, args ...string) (code int, output string) {
	t.Helper()
	var out statustest.Log
	env := map[string]string{"HOME": w.dir, "AWS_EC2_METADATA_DISABLED": "true"}
	code = run(t.Context(), args, surroundings{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(name string) string { return env[name] }})
	return code, out.String()
}

func TestCanaryInCommands(t *testing.T) {
	w := newCanaryWorld(t)
	root := t.TempDir()
	for _, broken := range []bool{false, true} {
		for name, text := range w.tree(t, "a", broken) {
			file := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(root, "overlays/prod")
		in := []string{"--secret-vars-file", filepath.Join(w.dir, "secrets.yaml"), "--age-key-file", w.keyFile}
		at := append(slices.Clone(in), "--region", "eu-west-1", "--endpoint-url", w.url)
		parameter := "#!/bin/bash\npassword: " + canarySOPS + " " + canaryVariable + " " + canaryFile
		w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateLaunchTemplate", Code: "InvalidParameterValue",
			Message: "Value (" + parameter[:strings.LastIndex(parameter, " ")] + ") " + base64.StdEncoding.EncodeToString([]byte(parameter)) + " is invalid"})
		for _, args := range [][]string{
			append([]string{"validate", path}, in...), append([]string{"validate", path, "-o", "json"}, in...), append([]string{"validate", path, "-o", "sarif"}, in...),
			append([]string{"render", path, "-o", "intents"}, in...), append([]string{"render", path, "-o", "intents-json"}, in...),
			append([]string{"explain", path, "sops"}, in...), append([]string{"explain", path, "joins", "-o", "json"}, in...),
			append([]string{"plan", path}, at...), append([]string{"plan", path, "-o", "json"}, at...), append([]string{"plan", path, "-o", "markdown"}, at...),
			append([]string{"apply", path}, at...), append([]string{"apply", path, "-o", "json"}, at...), append([]string{"apply", path, "-o", "markdown"}, at...),
			append([]string{"status", path}, at...),
			{"status", "--address", "http://weir:" + canaryUserinfo + "@127.0.0.1:1"},
			{"status", "--address", "http://" + canaryUserinfo + "@127.0.0.1:1%zz"},
		} {
			_, out := w.command(t, args...)
			if out == "" {
				t.Errorf("weir %s says nothing", args[0])
			}
			sing(t, fmt.Sprint("weir ", args[0], " broken ", broken), out)
		}
		// render shows the plain text of the manifests; that is its purpose.
		_, out := w.command(t, append([]string{"render", path}, in...)...)
		sing(t, "weir render", out, canaryFile)
		if broken {
			_, out = w.command(t, append([]string{"validate", path}, in...)...)
			if !strings.Contains(out, "secret-in-plain-field") || !strings.Contains(out, "secret-value") {
				t.Errorf("the canaries were not where they are looked for:\n%s", out)
			}
			continue
		}
		if _, out = w.command(t, append([]string{"render", path, "--show-secrets"}, in...)...); !strings.Contains(out, canaryVariable) {
			t.Errorf("the canaries are not in the manifests:\n%s", out)
		}
		if code, out := w.command(t, append([]string{"apply", path}, at...)...); code != 0 {
			t.Errorf("apply ends with %d:\n%s", code, out)
		}
		data := string(fmt.Append(nil, w.userData(t)))
		for _, c := range []string{canarySOPS, canaryBinary, canaryDotenv, canarySecret, canaryVariable, canaryFile, canaryToken} {
			if !strings.Contains(data, c) {
				t.Errorf("%s did not reach user data", c)
			}
		}
		// Without keys nothing is applied, and what is looked at holds no ciphertext.
		keyless := []string{"--region", "eu-west-1", "--endpoint-url", w.url, "--secret-vars-file", filepath.Join(w.dir, "secrets.yaml")}
		if code, out := w.command(t, append([]string{"apply", path}, keyless...)...); code != exitError || !strings.Contains(out, "sops-no-key") {
			t.Errorf("apply without keys ends with %d:\n%s", code, out)
		}
		if _, out := w.command(t, append([]string{"plan", path, "-o", "json"}, keyless...)...); !strings.Contains(out, "sops-encrypted") || strings.Contains(out, `"digest"`) {
			t.Errorf("plan without keys:\n%s", out)
		}
	}
}

// userData is the user data of all launch templates, decoded.
func (w *canaryWorld) userData(t *testing.T) (out []string) {
	t.Helper()
	for _, c := range w.aws.Calls() {
		form, err := url.ParseQuery(string(c.Body))
		if err != nil || c.ErrorCode != "" {
			continue
		}
		text, err := base64.StdEncoding.DecodeString(form.Get("LaunchTemplateData.UserData"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

func TestCanaryInDaemon(t *testing.T) {
	w := newCanaryWorld(t)
	w.repo.Write(w.tree(t, "a", false))
	w.repo.Commit("add pools with " + canaryVariable)
	parameter := base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\npassword: " + canarySOPS + "\n" + strings.Repeat(canaryFile, 4)))
	w.aws.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateLaunchTemplate", Times: 3, Code: "InternalError",
		Message: "Value " + parameter + " " + canaryDotenv + " is invalid", Status: http.StatusInternalServerError})
	d := w.start(t, w.config(t))
	look := func(when string) {
		t.Helper()
		d.everyPage(func(where, shown string) { sing(t, where+" "+when, shown) })
		sing(t, "the forge "+when, w.forge.got())
	}
	d.await("the pools", func() bool {
		return strings.Count(d.get("/api/v1/pools"), `"phase": "Running"`)+strings.Count(d.get("/api/v1/pools"), `"phase":"Running"`) >= 4
	})
	d.await("a status", func() bool { return w.forge.got() != "" })
	for _, signature := range []string{canaryWebhook, "sha256=" + canaryWebhook} {
		// A careless forge sends the secret where its signature belongs.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSpace(d.page.String())+"/hooks/pools", strings.NewReader(`{"ref":"`+canaryWebhook+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Gitea-Event", "push "+canaryWebhook)
		req.Header.Set("X-Gitea-Signature", signature)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if sing(t, "the answer to a webhook", string(answer)); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("an unsigned webhook gets %d", resp.StatusCode)
		}
	}
	d.await("a notification", func() bool { return strings.Contains(w.forge.got(), "weir.dev/event/v1") })
	look("once all is well")
	if !strings.Contains(d.get("/targets/prod")+d.get("/"), "add pools with (redacted)") {
		t.Error("the subject of the commit is not on the page")
	}

	w.repo.Write(w.tree(t, "b", true))
	w.repo.Commit("leak " + canaryPlain)
	d.await("the refusal", func() bool { return strings.Contains(d.get("/targets/prod"), "holds a secret value") })
	look("after a leak")

	files := w.tree(t, "c", false)
	files["overlays/prod/sops.yaml"] = strings.Replace(files["overlays/prod/sops.yaml"], "name:", "other: [\n  name:", 1)
	files["overlays/prod/plain.yaml"] += "x: {" + canarySecret + "\n"
	w.repo.Write(files)
	w.repo.Commit("break it")
	d.await("the fault", func() bool { return strings.Contains(d.get("/targets/prod"), "not valid YAML") })
	look("after a fault")

	w.repo.Answer(http.StatusInternalServerError)
	d.await("the source to fail", func() bool { return strings.Contains(d.log.String(), "source cannot be read") })
	look("without a source")
	d.stop()
	sing(t, "the log at the end", d.log.String())
	err := filepath.WalkDir(filepath.Join(w.dir, "state"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && e.Name() == "mirrors" { // the repository itself, as it was pushed
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if e.Type().IsRegular() {
			text, err := os.ReadFile(name)
			sing(t, "the state file "+e.Name(), string(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// canaryDaemon is a daemon in this process, and what it has printed.
type canaryDaemon struct {
	t         *testing.T
	page, log statustest.Log
	stop      func()
}

// start runs weir with a configuration until the test ends, or stop is called; it returns
// once there is a page.
func (w *canaryWorld) start(t *testing.T, config string) *canaryDaemon {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	d := &canaryDaemon{t: t, stop: func() { cancel(); <-done }}
	env := map[string]string{"HOME": w.dir, "AWS_EC2_METADATA_DISABLED": "true"}
	go func() {
		defer close(done)
		run(ctx, []string{"run", "--config", config, "--log-level", "debug", "--log-format", "json"},
			surroundings{stdin: strings.NewReader(""), stdout: &d.page, stderr: &d.log, getenv: func(name string) string { return env[name] }})
	}()
	t.Cleanup(d.stop)
	d.await("the page", func() bool { return strings.Contains(d.page.String(), "http") })
	return d
}

func (d *canaryDaemon) get(path string) string {
	resp, err := http.Get(strings.TrimSpace(d.page.String()) + path)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

func (d *canaryDaemon) await(what string, ok func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("waited in vain for %s\n%s", what, problems(d.log.String()))
		}
	}
}

// everyPage gives all that the daemon shows of the target prod, and its log.
func (d *canaryDaemon) everyPage(see func(where, shown string)) {
	d.t.Helper()
	for _, path := range []string{"/", "/pools", "/activity", "/activity?show=passes", "/configuration", "/pulls", "/targets/prod", "/targets/prod/plan", "/api/v1/pulls", "/api/v1/pools", "/api/v1/targets", "/api/v1/events", "/api/v1/history", "/api/v1/plans", "/metrics", "/healthz", "/readyz"} {
		see(path, d.get(path))
	}
	see("the log", d.log.String())
}

// problems are the lines of a log that say more than that a pass went by.
func problems(log string) string {
	var out []string
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "pass changed nothing") && !strings.Contains(line, `"msg":"call"`) {
			out = append(out, line)
		}
	}
	return strings.Join(out[max(0, len(out)-20):], "")
}
