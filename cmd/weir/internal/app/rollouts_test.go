package app

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
)

const otherTargets = `- {name: second, path: overlays/second, region: eu-west-1}
- {name: third, path: overlays/third, region: eu-west-2}
`

// inWaves are overlays with a pool each, the first of which has a FleetRollout of all.
func inWaves(instanceType, spec string) map[string]string {
	files := fleetOf(instanceType, "prod", "second", "third")
	files["overlays/prod/kustomization.yaml"] = "resources: [pool.yaml, rollout.yaml]\n"
	files["overlays/prod/rollout.yaml"] = "apiVersion: weir.dev/v1alpha1\nkind: FleetRollout\nmetadata: {name: nodes}\nspec:\n" + spec
	return files
}

// starts are the groups whose machines are replaced, in order.
type starts struct {
	mu    sync.Mutex
	names []string
}

func (s *starts) see(body string) {
	if form, err := url.ParseQuery(body); err == nil && form.Get("Action") == "StartInstanceRefresh" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.names = append(s.names, form.Get("AutoScalingGroupName"))
	}
}

func (s *starts) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.names)
}

func TestAGoodChangeRollsInWavesOverTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = otherTargets
	seen := &starts{}
	w.before = seen.see
	spec := "  waves:\n  - name: canary\n    selector: {targets: [third]}\n  - name: next\n    selector: {targets: [second]}\n"
	w.repo.Write(inWaves("m5.large", spec))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	for _, target := range []string{"prod", "second", "third"} {
		targetConverged(t, a, target, first)
	}
	w.repo.Write(inWaves("m6i.large", spec))
	second := w.repo.Commit("second")
	for _, target := range []string{"prod", "second", "third"} {
		targetConverged(t, a, target, second)
	}
	got := seen.list()
	if len(got) != 3 || !strings.Contains(got[0], "third") || !strings.Contains(got[1], "second") || !strings.Contains(got[2], "prod") {
		t.Errorf("machines were replaced in the order %q", got)
	}
	eventually(t, "the rollout ends", func() string {
		list, err := a.rollouts.List()
		if err != nil || len(list.Rollouts) != 1 || list.Rollouts[0].Phase != "Done" {
			return fmt.Sprintf("%+v, %v", list, err)
		}
		return ""
	})
}

func TestABadChangeStopsInItsCanary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = otherTargets
	seen := &starts{}
	w.before = seen.see
	spec := "  waves:\n  - name: canary\n    selector: {targets: [third]}\n"
	w.repo.Write(inWaves("m5.large", spec))
	first := w.repo.Commit("first")
	a, stop := w.start()
	for _, target := range []string{"prod", "second", "third"} {
		targetConverged(t, a, target, first)
	}
	healthy := w.aws.Faults().Launches.Add(ec2.LaunchFault{InstanceType: "m6i.large"})
	w.repo.Write(inWaves("m6i.large", spec))
	second := w.repo.Commit("second")
	heldBy(t, a, "second", second, step.HeldStopped, "weir reconcile second --retry")
	heldBy(t, a, "prod", second, step.HeldStopped, "was stopped by default/nodes")
	stop()

	// Neither a restart nor a commit without the FleetRollout frees what was stopped.
	healthy()
	w.repo.Write(fleetOf("m6i.large", "prod", "second", "third"))
	third := w.repo.Commit("third")
	a, stop = w.start()
	defer stop()
	heldBy(t, a, "second", third, step.HeldStopped, "was stopped by default/nodes")
	if got := seen.list(); slices.ContainsFunc(got, func(name string) bool { return !strings.Contains(name, "third") }) {
		t.Errorf("machines were replaced of %q", got)
	}
	w.repo.Write(inWaves("m6i.large", spec))
	fourth := w.repo.Commit("fourth")
	heldBy(t, a, "prod", fourth, step.HeldStopped, "was stopped by default/nodes")

	// Who asks for it again begins with the canary, whatever was reported before.
	before := len(seen.list())
	command(t, a, commands.ReconcilePath, gates.Request{Retry: true})
	for _, target := range []string{"prod", "second", "third"} {
		targetConverged(t, a, target, fourth)
	}
	if got := seen.list()[before:]; len(got) != 3 || !strings.Contains(got[0], "third") {
		t.Errorf("asked for again, machines were replaced in the order %q", got)
	}
}
