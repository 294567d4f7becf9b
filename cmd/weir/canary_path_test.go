package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

// TestPathKeepsJoinTokens applies a PATH whose pools have no tokens, one of cloud-init
// and one of Ignition: without a kubeconfig that is said with the flag to add, with one
// machines have a token to fetch, a new token changes neither versions nor machines nor
// the plan, and no output shows one.
func TestPathKeepsJoinTokens(t *testing.T) {
	w := newCanaryWorld(t)
	cluster := workloadtest.New(t)
	kubeconfig := cluster.Kubeconfig(t)
	path := filepath.Join(t.TempDir(), "prod")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	var docs []string
	for name, format := range map[string]string{"cloud": "cloud-config", "flat": "ignition"} {
		docs = append(docs, canaryPool(name, "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: "+name+"}", "a"),
			"apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: "+name+"}\nspec: {format: "+format+"}\n")
	}
	if err := os.WriteFile(filepath.Join(path, "pools.yaml"), []byte(strings.Join(docs, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	var shown []string
	weir := func(want int, args ...string) string {
		t.Helper()
		code, out := w.command(t, append(args, path, "--region", "eu-west-1", "--endpoint-url", w.url)...)
		if code != want {
			t.Fatalf("weir %v ends with %d\n%s", args, code, out)
		}
		shown = append(shown, out)
		return out
	}
	for _, command := range []string{"plan", "apply"} {
		out := weir(exitError, command)
		if strings.Count(out, "join-token-not-kept") < 2 || !strings.Contains(out, "add --kubeconfig FILE") || strings.Contains(out, "give the target a kubeconfigFile") {
			t.Errorf("weir %s without a kubeconfig says\n%s", command, out)
		}
	}
	if out := weir(exitOK, "plan", "--kubeconfig", kubeconfig); len(cluster.Secrets()) != 0 || !strings.Contains(out, "join-token-once") {
		t.Errorf("%d Secrets after\n%s", len(cluster.Secrets()), out)
	}
	digest := func() string {
		t.Helper()
		out := weir(exitOK, "plan", "--kubeconfig", kubeconfig, "-o", "json")
		var p struct{ Digest string }
		if err := json.Unmarshal([]byte(out[strings.Index(out, "{"):]), &p); err != nil || p.Digest == "" {
			t.Fatalf("%v in\n%s", err, out)
		}
		return p.Digest
	}
	first := digest()
	w.aws.ResetCalls()
	weir(exitOK, "apply", "--kubeconfig", kubeconfig)
	tokens := cluster.Secrets()
	if len(tokens) != 2 {
		t.Fatalf("%d tokens in the cluster", len(tokens))
	}
	parameters := 0
	for _, c := range w.aws.Calls() {
		if c.Operation == "PutParameter" {
			parameters++
		}
	}
	if parameters != 2 {
		t.Errorf("%d parameters", parameters)
	}
	shown = append(shown, w.userData(t)...)
	// New tokens: those of before are gone from the cluster.
	settled := digest()
	if settled == first {
		t.Error("the plan did not change by its apply")
	}
	for key := range tokens {
		cluster.RemoveSecret(key)
	}
	w.aws.ResetCalls()
	weir(exitOK, "apply", "--kubeconfig", kubeconfig, "-o", "json")
	if len(cluster.Secrets()) != 2 {
		t.Errorf("%d tokens in the cluster", len(cluster.Secrets()))
	}
	for _, c := range w.aws.Calls() {
		if c.Write && c.Operation != "PutParameter" {
			t.Errorf("a new token leads to %s", c.Operation)
		}
	}
	if again := digest(); again != settled {
		t.Errorf("a new token changes the digest from %s to %s", settled, again)
	}
	weir(exitOK, "status", "--kubeconfig", kubeconfig)
	secrets := []string{workloadtest.Token}
	for _, all := range []map[string]map[string]string{tokens, cluster.Secrets()} {
		for _, s := range all {
			secrets = append(secrets, s["token-secret"])
		}
	}
	for _, out := range shown {
		for _, s := range secrets {
			if s == "" || strings.Contains(out, s) || strings.Contains(out, base64.StdEncoding.EncodeToString([]byte(s))) {
				t.Errorf("shown is %q in\n%s", s, out)
			}
		}
	}
	// A kubeconfig that cannot be used is said with its place, and not quoted.
	broken := strings.Replace(read(t, kubeconfig), "token:", "password: x, token:", 1)
	if err := os.WriteFile(kubeconfig, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := weir(exitError, "plan", "--kubeconfig", kubeconfig); !strings.Contains(out, "kubeconfig-unusable") || strings.Contains(out, workloadtest.Token) {
		t.Errorf("of a broken kubeconfig it says\n%s", out)
	}
	if _, out := w.command(t, "plan", "--config", "weir.yaml", "--kubeconfig", kubeconfig); !strings.Contains(out, "--kubeconfig needs a PATH") {
		t.Error(out)
	}
}
