package workload_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
)

func TestDisruptionBudgets(t *testing.T) {
	type object = map[string]any
	server := workloadtest.New(t)
	c := open(t, server.Kubeconfig(t))
	for i, app := range []string{"web", "web", "db"} {
		server.AddPod(workloadtest.Pod{Namespace: "shop", Name: fmt.Sprintf("p%d", i), Node: "n", Labels: map[string]string{"app": app}})
	}
	server.AddPod(workloadtest.Pod{Namespace: "other", Name: "p", Node: "n", Labels: map[string]string{"app": "web"}})
	for _, name := range []string{"equal", "every", "in", "none", "stale", "lost"} {
		server.AddBudget("shop", name, "app", "web", 0)
	}
	server.EditBudget("shop/every", object{"spec": object{"selector": object{"matchLabels": nil}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}})
	server.EditBudget("shop/in", object{"spec": object{"selector": object{"matchLabels": nil, "matchExpressions": []any{object{"key": "app", "operator": "In", "values": []any{"db", "x"}}}}}})
	server.EditBudget("shop/none", object{"spec": object{"selector": nil}})
	server.EditBudget("shop/stale", object{"metadata": object{"generation": 2}, "status": object{"observedGeneration": 1, "disruptionsAllowed": 1}})
	server.EditBudget("shop/lost", object{"status": object{"conditions": []any{object{"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "found no controllers"}}}})
	server.SetPage(2, true)
	all, err := c.DisruptionBudgets(t.Context())
	if err != nil || len(all) != 6 {
		t.Fatalf("%d budgets: %v", len(all), err)
	}
	got := map[string]string{}
	for _, b := range all {
		pods, err := c.PodsOf(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range pods {
			names = append(names, p.String())
		}
		got[b.Name] = fmt.Sprint(names, b.Counted, b.Allowed, b.FreesUnready, b.Why)
	}
	for name, want := range map[string]string{
		"equal": "[shop/p0 shop/p1] true 0 false", "every": "[shop/p0 shop/p1 shop/p2] true 0 true", "in": "[shop/p2] true 0 false", "none": "[] true 0 false",
		"stale": "[shop/p0 shop/p1] false 1 false", "lost": "[shop/p0 shop/p1] true 0 falsefound no controllers",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if log := server.Log(); !slices.Contains(log, "GET /apis/policy/v1/poddisruptionbudgets") || !slices.Contains(log, "GET /api/v1/namespaces/shop/pods") {
		t.Error(log)
	}
	server.Fail(workloadtest.Fault{Path: "/apis/policy", Status: 403})
	if _, err := c.DisruptionBudgets(t.Context()); workload.KindOf(err) != workload.Forbidden {
		t.Error(err)
	}
}

// TestBlocksIsTheEvictionAPIsRule: what weir foretells is what the server then says.
func TestBlocksIsTheEvictionAPIsRule(t *testing.T) {
	full := workload.DisruptionBudget{Counted: true, Healthy: 2, Needed: 2, Expected: 2}
	with := func(change func(*workload.DisruptionBudget)) workload.DisruptionBudget {
		b := full
		change(&b)
		return b
	}
	ready := workload.Pod{Ready: true}
	for name, tt := range map[string]struct {
		budget workload.DisruptionBudget
		pod    workload.Pod
		want   bool
	}{
		"ready":                          {full, ready, true},
		"allowed":                        {with(func(b *workload.DisruptionBudget) { b.Allowed = 1 }), ready, false},
		"not counted yet":                {with(func(b *workload.DisruptionBudget) { b.Allowed, b.Counted = 1, false }), ready, true},
		"ended":                          {full, workload.Pod{Finished: true}, false},
		"not begun":                      {full, workload.Pod{Pending: true}, false},
		"unready, enough others":         {full, workload.Pod{}, false},
		"unready, too few others":        {with(func(b *workload.DisruptionBudget) { b.Healthy = 1 }), workload.Pod{}, true},
		"unready, none needed":           {with(func(b *workload.DisruptionBudget) { b.Healthy, b.Needed = 0, 0 }), workload.Pod{}, true},
		"unready, and such always may":   {with(func(b *workload.DisruptionBudget) { b.Healthy, b.FreesUnready = 1, true }), workload.Pod{}, false},
		"ready, though unready ones may": {with(func(b *workload.DisruptionBudget) { b.Healthy, b.FreesUnready = 1, true }), ready, true},
	} {
		if got := tt.budget.Blocks(tt.pod); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
