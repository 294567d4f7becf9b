package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/render/tree"
)

// TestAGateThatCanNeverKnow is an error where the FleetRollout stands: of the targets that it
// selects, and of no other.
func TestAGateThatCanNeverKnow(t *testing.T) {
	const gate = "apiVersion: weir.dev/v1alpha1\nkind: FleetRollout\nmetadata: {name: nodes}\nspec:\n  selector: {targets: [SELECTED]}\n  gates:\n  - name: ready\n    nodesReady: {within: 10m, required: REQUIRED}\n"
	for name, c := range map[string]struct{ selected, required, want string }{
		"some without":     {`"*"`, "true", "the gate ready of default/nodes requires Ready nodes, and weir cannot read the nodes of b, c"},
		"those with one":   {"a", "true", ""},
		"it is not needed": {`"*"`, "false", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "- {name: a, path: a, region: eu-west-1, kubeconfigFile: kube.yaml}\n- {name: b, path: b, region: eu-west-1}\n- {name: c, path: c, region: eu-west-1}\n")
			good, err := os.ReadFile(workloadtest.New(t).Kubeconfig(t))
			if err == nil {
				err = os.WriteFile(filepath.Join(h.dir, "kube.yaml"), good, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			text := strings.NewReplacer("SELECTED", c.selected, "REQUIRED", c.required).Replace(gate)
			_, got := h.compose(View{Snapshot: snap("1", tree.Map{"a/pool.yaml": fleettest.Pool("web-a"), "a/rollout.yaml": text, "b/pool.yaml": fleettest.Pool("web-b"), "c/pool.yaml": fleettest.Pool("web-c")})})
			said := ""
			for target, d := range got {
				if d.Set == nil || !d.Whole {
					t.Errorf("%s: %v", target, d.Diagnostics)
				}
				for _, one := range d.Diagnostics {
					if one.Code == "gate-without-kubeconfig" {
						said += one.Summary
						if target != "a" || one.Object != "FleetRollout default/nodes" || one.Field != "spec.gates[0].nodesReady.required" {
							t.Errorf("%s: %+v", target, one)
						}
					}
				}
			}
			if said != c.want {
				t.Errorf("%q, want %q", said, c.want)
			}
		})
	}
}

// TestDemandedWavesOfAnotherTarget count only while its files say them, in what is followed
// and in a proposal alike.
func TestDemandedWavesOfAnotherTarget(t *testing.T) {
	const waves = "apiVersion: weir.dev/v1alpha1\nkind: FleetRollout\nmetadata: {name: nodes}\nspec:\n  selector: {targets: [a]}\n  waves: [{pools: 1}]\n"
	h := newHarness(t, "- {name: a, path: a, region: eu-west-1, rollout: {required: true, minWaves: 1}}\n- {name: b, path: b, region: eu-west-1}\n")
	files := tree.Map{"a/pool.yaml": fleettest.Pool("web-a"), "b/pool.yaml": fleettest.Pool("web-b"), "b/rollout.yaml": waves}
	unmet := func(got map[string]reconciler.Desired) string {
		if len(got["b"].Policy.Unmet) > 0 {
			t.Errorf("b demands nothing: %v", got["b"].Policy.Unmet)
		}
		return got["a"].Policy.Unmet["default/web-a"]
	}
	view := View{Snapshot: snap("1", files)}
	if _, got := h.compose(view); unmet(got) != "" {
		t.Errorf("%q", unmet(got))
	}
	without := tree.Map{"a/pool.yaml": fleettest.Pool("web-a", "m5.large", "m6i.large"), "b/pool.yaml": files["b/pool.yaml"]}
	r := h.review(view, Proposal{Source: "s", Snapshot: snap("2", without)})
	for _, b := range r.Batches {
		for _, d := range b.Targets {
			if d.Policy.Target == "a" && !strings.Contains(d.Policy.Unmet["default/web-a"], "no FleetRollout of the source selects the pool") {
				t.Errorf("a proposal without the waves: %+v", d.Policy.Unmet)
			}
		}
	}
	if len(r.Batches) == 0 {
		t.Error("nothing is touched")
	}
	broken := tree.Map{"a/pool.yaml": files["a/pool.yaml"], "b/pool.yaml": "kind: [", "b/rollout.yaml": waves}
	if _, got := h.compose(View{Snapshot: snap("3", broken)}); !strings.Contains(unmet(got), "; the part of the target b in it cannot be read; ") {
		t.Errorf("%q", unmet(got))
	}
}

// TestWavesThatSeparateNothing are said where they are written, and do not count.
func TestWavesThatSeparateNothing(t *testing.T) {
	const waves = "apiVersion: weir.dev/v1alpha1\nkind: FleetRollout\nmetadata: {name: nodes}\nspec:\n  waves:\n  - {name: one, selector: {targets: [nowhere]}}\n  - {name: two, selector: {targets: [b]}}\n  - {name: three, percent: 100}\n"
	h := newHarness(t, "- {name: a, path: a, region: eu-west-1, rollout: {required: true, minWaves: 2}}\n- {name: b, path: b, region: eu-west-1}\n")
	files := tree.Map{"a/pool.yaml": fleettest.Pool("web-a") + "---\n" + fleettest.Pool("web-c"), "a/rollout.yaml": waves, "b/pool.yaml": fleettest.Pool("web-b")}
	_, got := h.compose(View{Snapshot: snap("1", files)})
	said := ""
	for _, d := range got["a"].Diagnostics {
		if d.Code == "wave-without-pools" {
			said += d.Field + ": " + d.Summary
		}
	}
	if want := "spec.waves[0]: the FleetRollout default/nodes has a wave that cannot match any pool (one): weir skips it, and does not count it for minWaves"; said != want {
		t.Errorf("%q, want %q", said, want)
	}
	// The pool of b makes none count either: nobody demands waves of it.
	if unmet := got["a"].Policy.Unmet["default/web-a"]; !strings.Contains(unmet, "has 1 wave, and 2 are required; no pool that counts can be in one, two") {
		t.Errorf("%q", unmet)
	}
}

// TestAProposalForeseesItsWaves from the machines that its plans replace.
func TestAProposalForeseesItsWaves(t *testing.T) {
	const waves = "apiVersion: weir.dev/v1alpha1\nkind: FleetRollout\nmetadata: {name: nodes}\nspec:\n  waves:\n  - {percent: 1}\n  - {percent: 2}\n  - {percent: 100}\n"
	h := newHarness(t, "- {name: a, path: a, region: eu-west-1, rollout: {required: true, minWaves: 2}}\n")
	pools := func(kinds ...string) string {
		return fleettest.Pool("web-a", kinds...) + "---\n" + fleettest.Pool("web-b", kinds...)
	}
	files := tree.Map{"a/pool.yaml": pools(), "a/rollout.yaml": waves}
	change := func(waves string) string {
		r := h.review(View{Snapshot: snap("1", files)}, Proposal{Source: "s", Snapshot: snap("2", tree.Map{"a/pool.yaml": pools("m5.large", "m6i.large"), "a/rollout.yaml": waves})})
		roll := func(pool string) step.Step {
			return step.Step{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/" + pool, Instances: 5, Do: step.StartRefresh{Group: pool}}
		}
		reports := r.Plan(func(reconciler.Batch) []*plan.Report {
			return []*plan.Report{{Target: "a", Plan: &plan.Plan{Target: "a", Steps: []step.Step{roll("web-a"), roll("web-b")}}}}
		})
		if len(reports) != 1 {
			t.Fatalf("%d reports", len(reports))
		}
		s := reports[0].Plan.Steps[0]
		return string(s.Held) + s.HeldReason
	}
	if got := change(waves); !strings.HasPrefix(got, "policy") || !strings.Contains(got, "has 1 wave with machines of this change (wave 3), and 2 are required; no counted machine is in wave 1, wave 2") {
		t.Errorf("held %q", got)
	}
	if got := change(strings.Replace(waves, "percent: 2", "percent: 50", 1)); got != "" {
		t.Errorf("held %q", got)
	}
}
