package main

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

// TestCanaryJoinTokens runs a daemon that keeps join tokens: neither the tokens
// that it makes nor the credentials of the kubeconfig are shown anywhere, and
// machines get user data without any of them.
func TestCanaryJoinTokens(t *testing.T) {
	w := newCanaryWorld(t)
	cluster := workloadtest.New(t)
	w.repo.Write(map[string]string{
		"overlays/prod/kustomization.yaml": "resources: [pools.yaml]\n",
		"overlays/prod/pools.yaml": canaryPool("joins", "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: joins}", "a") +
			"---\napiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: joins}\nspec: {verbosity: 2}\n",
	})
	w.repo.Commit("add a pool")
	kubeconfig := cluster.Kubeconfig(t)
	file := w.config(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "region: eu-west-1,", fmt.Sprintf("region: eu-west-1, kubeconfigFile: %q, ssmPrefixes: [/fleet],", kubeconfig), 1))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	// Looking makes nothing.
	if _, out := w.command(t, "plan", "--config", file); !strings.Contains(out, "joins") || strings.Contains(out, "join-token-not-kept") {
		t.Errorf("weir plan says\n%s", out)
	}
	if n := len(cluster.Secrets()); n != 0 {
		t.Fatalf("weir plan made %d Secrets", n)
	}

	d := w.start(t, file)
	secrets := func() []string {
		out := []string{workloadtest.Token}
		for _, s := range cluster.Secrets() {
			out = append(out, s["token-secret"])
		}
		return out
	}
	silent := func(where, text string) {
		t.Helper()
		for _, s := range secrets() {
			if strings.Contains(text, s) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(s))) {
				t.Errorf("%s shows a token", where)
			}
		}
	}
	look := func(when string) {
		t.Helper()
		d.everyPage(func(where, shown string) { silent(where+" "+when, shown) })
		silent("the forge "+when, w.forge.got())
	}
	d.await("the group", func() bool { return w.called("CreateAutoScalingGroup") })
	if len(secrets()) != 2 || !w.called("PutParameter") {
		t.Errorf("%d Secrets", len(secrets())-1)
	}
	d.await("a status", func() bool { return w.forge.got() != "" })
	look("once all is well")
	for _, data := range w.userData(t) {
		silent("user data", data)
		if data != "" && !strings.Contains(data, "/fleet/fleet/prod/default/joins") {
			t.Errorf("user data names no parameter:\n%s", data)
		}
	}
	// A kubeconfig that is broken is said, and not quoted.
	broken := strings.Replace(read(t, kubeconfig), "token:", "password: x, token:", 1)
	if err := os.WriteFile(kubeconfig, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	d.await("the fault", func() bool { return strings.Contains(d.get("/targets/prod"), "has a password") })
	look("after a fault")
	d.stop()
	silent("the log at the end", d.log.String())
	err = filepath.WalkDir(filepath.Join(w.dir, "state"), func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			silent("the state file "+e.Name(), read(t, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// called reports whether an operation succeeded.
func (w *canaryWorld) called(operation string) bool {
	for _, c := range w.aws.Calls() {
		if c.Operation == operation && c.ErrorCode == "" {
			return true
		}
	}
	return false
}
