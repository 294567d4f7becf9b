package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/step"
)

const (
	demanded  = "  rollout: {required: true, minWaves: 2}\n"
	oneWave   = "  waves:\n  - name: canary\n    pools: 1\n"
	twoWaves  = "  waves:\n  - {name: canary, pools: 1, shares: [50, 100]}\n  - {name: half, percent: 50}\n" // of one pool the shares count
	twoEmpty  = oneWave + "  - {name: half, percent: 50}\n"
	lacksPool = "the FleetRollout default/nodes has 1 wave with machines of this change (canary), and 2 are required; no counted machine is in half"
	lacksIt   = "no FleetRollout of the source selects the pool; released by: a commit with such a FleetRollout, or a change of the configuration"
	lacksWave = "the FleetRollout default/nodes has 1 wave, and 2 are required"
)

// demandedFiles are prod's overlay with a pool of two machines, and a FleetRollout where spec says one.
func demandedFiles(instanceType string, size int, spec string) map[string]string {
	two := strings.Replace(pool("prod-web", instanceType, size), "replicas: 1", "replicas: 2", 1)
	files := map[string]string{"overlays/prod/kustomization.yaml": "resources: [pool.yaml]\n", "overlays/prod/pool.yaml": two}
	if spec != "" {
		files["overlays/prod/kustomization.yaml"] = "resources: [pool.yaml, rollout.yaml]\n"
		files["overlays/prod/rollout.yaml"] = inWaves(instanceType, spec)["overlays/prod/rollout.yaml"]
	}
	return files
}

// TestATargetThatDemandsWaves: without them no machine is replaced, and all else goes on.
func TestATargetThatDemandsWaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = demanded
	seen := &starts{}
	w.before = seen.see
	commit := func(instanceType string, size int, spec, message string) string {
		w.repo.Write(demandedFiles(instanceType, size, spec))
		return w.repo.Commit(message)
	}
	first := commit("m5.large", 3, "", "new pools are no rollout")
	a, stop := w.start()
	targetConverged(t, a, "prod", first)
	second := commit("m5.large", 4, "", "another size")
	targetConverged(t, a, "prod", second)
	third := commit("m6i.large", 4, "", "another type, without waves")
	heldBy(t, a, "prod", third, step.HeldPolicy, lacksIt)
	fourth := commit("m6i.large", 5, oneWave, "one wave and a size")
	heldBy(t, a, "prod", fourth, step.HeldPolicy, lacksWave)
	eventually(t, "the run says what holds it", func() string {
		list, err := a.rollouts.List()
		if err != nil || len(list.Rollouts) != 1 || !strings.Contains(list.Rollouts[0].Waits, "is held (policy: ") {
			return fmt.Sprintf("%+v, %v", list, err)
		}
		return ""
	})
	stop()
	a, stop = w.start() // it is no matter of what was remembered
	defer stop()
	heldBy(t, a, "prod", fourth, step.HeldPolicy, lacksWave)
	if got := seen.list(); len(got) > 0 {
		t.Fatalf("machines were replaced of %q", got)
	}
	empty := commit("m6i.large", 5, twoEmpty, "two waves, of which one holds no machine")
	heldBy(t, a, "prod", empty, step.HeldPolicy, lacksPool)
	if got := seen.list(); len(got) > 0 {
		t.Fatalf("machines were replaced of %q", got)
	}
	fifth := commit("m6i.large", 5, twoWaves, "waves")
	targetConverged(t, a, "prod", fifth)
	if got := seen.list(); !slices.Equal(got, []string{"prod-web", "prod-web"}) {
		t.Errorf("machines were replaced of %q", got)
	}
	sixth := commit("m5.large", 5, "", "a change that takes the waves away")
	heldBy(t, a, "prod", sixth, step.HeldPolicy, lacksIt)
	if got := seen.list(); len(got) != 2 {
		t.Errorf("machines were replaced of %q", got)
	}
}

// TestAPullRequestWithoutTheWavesItNeeds says so before it is merged, whether it never had
// them or takes them away.
func TestAPullRequestWithoutTheWavesItNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.extra = demanded
	w.repo.Write(demandedFiles("m5.large", 3, twoWaves))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	targetConverged(t, a, "prod", first)
	for number, c := range map[int]struct{ spec, says, not string }{
		1: {"", "held: policy", ""},
		2: {oneWave, lacksWave, ""},
		3: {twoWaves, "m6i.large", "policy"},
		4: {twoEmpty, lacksPool, ""},
	} {
		head := w.propose(number, demandedFiles("m6i.large", 3, c.spec))
		eventually(t, fmt.Sprint("the plan of ", number), func() string {
			state, text := w.forge.last(head, "fleet/plan")
			told := strings.Join(w.forge.told(number), "\n")
			if state == "" || state == "pending" || !strings.Contains(told, c.says) || c.not != "" && strings.Contains(told, c.not) {
				return fmt.Sprintf("%s %q, told %s", state, text, told)
			}
			return ""
		})
	}
}

// TestAMemberThatDemandsWaves: the owner of an account and region holds by its own
// configuration, whoever conducts the waves and whatever that one's says.
func TestAMemberThatDemandsWaves(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	seen := &starts{}
	s.before = seen.see
	s.repo.Write(demandedFiles("m5.large", 3, oneWave))
	first := s.repo.Commit("first")
	a := s.member("a") // conducts, and demands nothing
	defer a.stop()
	s.extra = demanded
	b := s.member("b")
	defer b.stop()
	for _, m := range []*member{a, b} {
		targetConverged(t, m.App, "prod", first)
	}
	s.repo.Write(demandedFiles("m6i.large", 3, oneWave))
	second := s.repo.Commit("second")
	for _, m := range []*member{b, a} {
		heldBy(t, m.App, "prod", second, step.HeldPolicy, lacksWave)
	}
	if got := seen.list(); len(got) > 0 {
		t.Errorf("machines were replaced of %q", got)
	}
	s.repo.Write(demandedFiles("m6i.large", 3, twoWaves))
	third := s.repo.Commit("third")
	for _, m := range []*member{b, a} {
		targetConverged(t, m.App, "prod", third)
	}
}
