package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

// TestPlanNamesBudgets: with a kubeconfig, the plan of a PATH whose machines are replaced
// names the budget that lets no pod go, at the line of the pool, and asks nothing of the
// cluster's budgets where it replaces none.
func TestPlanNamesBudgets(t *testing.T) {
	w := newCanaryWorld(t)
	cluster := workloadtest.New(t)
	kubeconfig := cluster.Kubeconfig(t)
	file := filepath.Join(t.TempDir(), "prod", "pools.yaml")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	text := canaryPool("web", "configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: web}", "a") +
		"---\napiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: web}\nspec: {verbosity: 2}\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	weir := func(command string) string {
		t.Helper()
		code, out := w.command(t, command, filepath.Dir(file), "--region", "eu-west-1", "--endpoint-url", w.url, "--kubeconfig", kubeconfig)
		if code != exitOK {
			t.Fatalf("weir %s ends with %d\n%s", command, code, out)
		}
		return out
	}
	write(text)
	weir("apply")
	ask := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(url.Values{"Action": {"DescribeAutoScalingInstances"}, "Version": {"2011-01-01"}}.Encode()))
	ask.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ask.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=weir/20260101/eu-west-1/autoscaling/aws4_request, SignedHeaders=host, Signature=0")
	answer := httptest.NewRecorder()
	w.aws.ServeHTTP(answer, ask)
	ids := regexp.MustCompile(`<InstanceId>(i-[0-9a-f]+)<`).FindStringSubmatch(answer.Body.String())
	if ids == nil {
		t.Fatalf("no machine in %s", answer.Body)
	}
	cluster.AddNode("n1", "aws:///eu-west-1a/"+ids[1], "True")
	cluster.AddPod(workloadtest.Pod{Namespace: "shop", Name: "cart-0", Node: "n1", Owner: "StatefulSet", Labels: map[string]string{"app": "cart"}})
	cluster.AddBudget("shop", "cart", "app", "cart", 0)
	asked := func() bool { return strings.Contains(strings.Join(cluster.Log(), "\n"), "poddisruptionbudgets") }
	asked()
	if out := weir("plan"); strings.Contains(out, "budget") || asked() {
		t.Errorf("at rest weir plan says\n%s", out)
	}
	write(strings.Replace(text, "m5.large", "m5.xlarge", 1))
	out := weir("plan")
	for _, want := range []string{"pools.yaml:", "the disruption budget shop/cart never allows a disruption, because it requires all 1 pods to be healthy, and its pod cart-0 is on the machines of the pool: nothing in Git respects the budget", "[budget-blocks]"} {
		if !strings.Contains(out, want) {
			t.Errorf("weir plan lacks %q\n%s", want, out)
		}
	}
	if !asked() {
		t.Error("the cluster was not asked")
	}
	cluster.Fail(workloadtest.Fault{Path: "/apis/policy", Status: http.StatusForbidden})
	if out := weir("plan"); !strings.Contains(out, "weir does not know for all disruption budgets whether they allow disruptions: list poddisruptionbudgets: 403 Forbidden") {
		t.Errorf("without the permission weir plan says\n%s", out)
	}
}
