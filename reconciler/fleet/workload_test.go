package fleet

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/tree"
)

// TestTargetsHaveTheirClusters gives each of the directories that a wildcard
// stands for the cluster of its own kubeconfig, and keeps its client while that is
// the same.
func TestTargetsHaveTheirClusters(t *testing.T) {
	h := newHarness(t, "- {name: 'c-{1}', path: clusters/*, region: eu-west-1, kubeconfigFile: 'kube-{1}.yaml'}\n- {name: none, path: plain, region: eu-west-1}")
	hidden := &redact.Registry{}
	h.fleet.o.Secrets = hidden
	h.fleet.o.Logger = slog.New(slog.DiscardHandler)
	view := View{Snapshot: snap("1", tree.Map{"clusters/a/pool.yaml": fleettest.Pool("web-a"), "clusters/b/pool.yaml": fleettest.Pool("web-b"), "plain/pool.yaml": fleettest.Pool("web-c")})}
	server := workloadtest.New(t)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	good, err := os.ReadFile(server.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	write("kube-a.yaml", string(good))
	write("kube-b.yaml", strings.Replace(string(good), "token: "+workloadtest.Token, "exec: {command: canary-command}", 1))
	_, got := h.compose(view)
	a, b, none := got["c-a"], got["c-b"], got["none"]
	if a.Workload == nil || a.Tokens == nil || a.Policy.JoinTokens.Prefix != "/weir" || a.Diagnostics.HasErrors() {
		t.Errorf("a: %+v", a)
	}
	if _, err := a.Workload.Nodes(t.Context()); err != nil {
		t.Error(err)
	}
	if b.Workload != nil || b.Tokens == nil || len(b.Diagnostics) != 1 || b.Diagnostics[0].Code != "kubeconfig-unusable" || !strings.Contains(b.Diagnostics[0].Summary, "exec plugin") {
		t.Errorf("b: %+v", b.Diagnostics)
	}
	if !b.Whole || b.Set == nil || strings.Contains(b.Diagnostics[0].String(), "canary") {
		t.Errorf("b: whole %v, %v", b.Whole, b.Diagnostics)
	}
	if _, err := b.Tokens.ClusterInfo(t.Context()); err == nil {
		t.Error("a kubeconfig that cannot be used leads somewhere")
	}
	if none.Workload != nil || none.Tokens != nil || none.Policy.JoinTokens.Prefix != "" {
		t.Errorf("none: %+v", none)
	}
	if text := hidden.Redact("a " + workloadtest.Token); strings.Contains(text, workloadtest.Token) {
		t.Error("the credentials of the kubeconfig are shown")
	}
	_, again := h.compose(view)
	if again["c-a"].Tokens != a.Tokens || again["c-b"].Tokens != b.Tokens {
		t.Error("clients are made anew without a reason")
	}
	write("kube-a.yaml", strings.Replace(string(good), workloadtest.Token, "another-token", 1))
	if _, again = h.compose(view); again["c-a"].Tokens == a.Tokens {
		t.Error("new credentials are not taken")
	}
	if err := os.Remove(filepath.Join(h.dir, "kube-a.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, again = h.compose(view); again["c-a"].Diagnostics[0].Code != "kubeconfig-unusable" {
		t.Errorf("without its file: %v", again["c-a"].Diagnostics)
	}
}
