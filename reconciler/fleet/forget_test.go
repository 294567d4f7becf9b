package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			"renders": len(h.fleet.renders), "room": len(h.fleet.budget.renders), "made": len(h.fleet.budget.made), "clusters": len(h.fleet.clusters), "decrypters": len(h.fleet.decrypters),
			"sources": len(h.fleet.sources), "jobs": len(h.fleet.jobs), "names": len(h.fleet.rosters["s"].names),
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
		want := map[string]int{"renders": 4, "room": 4, "made": 0, "clusters": 4, "decrypters": 1, "sources": 4, "jobs": 0, "names": 4}
		if d := cmp.Diff(want, counts()); d != "" {
			t.Errorf("round %d (-want +got):\n%s", round, d)
		}
	}
}
