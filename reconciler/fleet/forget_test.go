package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/render/sops/sopstest"
	"github.com/weir-gitops/weir/render/tree"
)

// Targets that come and go, with clusters and keys of their own, leave nothing behind.
func TestAFleetForgetsWhatIsGone(t *testing.T) {
	h := newHarness(t, "- {name: 'c-{1}', path: 'clusters/*', region: eu-west-1, kubeconfigFile: 'kube-{1}.yaml', ageKeyFiles: [key.txt]}\n")
	kubeconfig, err := os.ReadFile(workloadtest.New(t).Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	counts := func() map[string]int {
		return map[string]int{
			"renders": len(h.fleet.renders), "room": len(h.fleet.room.renders), "made": len(h.fleet.room.made), "clusters": len(h.fleet.clusters), "decrypters": len(h.fleet.decrypters),
			"roleless": len(h.fleet.roleless), "sources": len(h.fleet.sources), "jobs": len(h.fleet.jobs), "names": len(h.fleet.rosters["s"].names),
		}
	}
	for round := range 5 {
		files := tree.Map{}
		write("key.txt", sopstest.Age(t).Identity)
		for i := range 4 {
			name := fmt.Sprintf("r%d-%d", round, i)
			files["clusters/"+name+"/pool.yaml"] = fleettest.Pool("web-" + name)
			write("kube-"+name+".yaml", string(kubeconfig))
		}
		h.compose(View{Snapshot: snap(fmt.Sprint(round), files)})
		want := map[string]int{"renders": 4, "room": 4, "made": 0, "clusters": 4, "decrypters": 1, "roleless": 4, "sources": 4, "jobs": 0, "names": 4}
		if d := cmp.Diff(want, counts()); d != "" {
			t.Errorf("round %d (-want +got):\n%s", round, d)
		}
	}
}

// Scopes over which nobody passes any more are let go of; one that is wanted again is
// opened anew.
func TestScopesAreForgotten(t *testing.T) {
	h := newHarness(t, "- {name: a, path: a, region: eu-west-1}\n")
	regions := strings.Fields("eu-west-1 eu-west-2 eu-west-3 eu-central-1 eu-north-1 us-east-1 us-east-2 us-west-1 us-west-2 ap-southeast-2")
	key := func(i int) reconciler.ScopeKey {
		return reconciler.ScopeKey{Region: regions[i%10], Endpoint: h.url, Account: []string{"", "000000000000"}[i/10]}
	}
	for i := range 20 {
		if a := h.scopes.Open(t.Context(), key(i)); a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if len(h.scopes.open) != 20 || len(h.scopes.answered) != 20 {
		t.Fatalf("%d are open, %d have answered", len(h.scopes.open), len(h.scopes.answered))
	}
	first := h.scopes.Open(t.Context(), key(0)).Scope
	for i := range 10 {
		h.scopes.Forget(key(i))
	}
	if len(h.scopes.open) != 10 || len(h.scopes.answered) != 10 {
		t.Errorf("%d are open, %d have answered", len(h.scopes.open), len(h.scopes.answered))
	}
	// A pass that was under way goes on.
	if _, err := first.Pass(t.Context(), nil, reconciler.PlanOnly); err != nil {
		t.Error(err)
	}
	if again := h.scopes.Open(t.Context(), key(0)); again.Err != nil || again.Scope == first {
		t.Errorf("opened again: %v", again.Err)
	}
	h.scopes.ForgetUnused(0)
	if n := len(h.scopes.open) + len(h.scopes.answered); n > 0 {
		t.Errorf("%d are left", n)
	}
}
