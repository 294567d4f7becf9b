package plan

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// settle has the memory say that all pools of the input had converged.
func settle(in *model.Input) {
	in.Memory.Converged = map[string]model.LastConverged{}
	for i := range in.Set.Pools {
		p := &in.Set.Pools[i]
		in.Memory.Converged[model.ConvergedKey(in.Policy.Target, p.Key.String())] = model.LastConverged{Pool: p, Answers: in.Answers}
	}
}

// Whatever a target was and is held to, its plan makes, ends, launches and rolls nothing; and
// what never was applied stays undone.
func TestAHeldPlanOnlyPutsBack(t *testing.T) {
	corrections := 0
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		draw := func(t *rapid.T) []intent.Pool {
			var list []intent.Pool
			for _, n := range []string{"a", "b", "c"} {
				if rapid.IntRange(0, 4).Draw(t, "has "+n) == 0 {
					continue
				}
				p := groupPool(n, rapid.SampledFrom([]string{"m5.large", "m5.xlarge"}).Draw(t, "type"), rapid.Int32Range(0, 6).Draw(t, "replicas"))
				p.Replicas.Written = rapid.Bool().Draw(t, "written")
				p.Group.Refresh.Disable = rapid.Bool().Draw(t, "disable")
				p.FollowImages = rapid.Bool().Draw(t, "follow")
				list = append(list, p)
			}
			return list
		}
		for range rapid.IntRange(1, 3).Draw(t, "commits") {
			list := draw(t)
			for range rapid.IntRange(0, 8).Draw(t, "passes") {
				p, _ := m.pass(t, testInput(list...))
				m.apply(p)
			}
		}
		for n, g := range m.state.Groups {
			if rapid.Bool().Draw(t, "drift of "+n) {
				g.MaxSize += rapid.Int32Range(1, 5).Draw(t, "max")
				m.state.Groups[n] = g
			}
		}
		in := testInput(draw(t)...)
		in.Policy.Fallback = &model.Fallback{Revision: fmt.Sprintf("%040d", 1), Recorded: rapid.Bool().Draw(t, "recorded")}
		settled := rapid.Bool().Draw(t, "settled")
		if settled {
			settle(&in)
		}
		p, _ := m.pass(t, in)
		for _, s := range p.Steps {
			a := s.About()
			if s.Verb != step.Update || s.Disrupts() || a.Makes != "" || a.Starts || a.Ends || a.Launches != nil || a.Refresh != "" || s.Drift == nil || !settled {
				t.Fatalf("a plan of a held target has %s %s %s: %s", s.Verb, s.Resource, s.Name, s.Reason)
			}
			corrections++
		}
		if p.Verdict().Answer == lastgood.Fits {
			for i := range in.Set.Pools {
				pool := &in.Set.Pools[i]
				g, exists := m.state.Groups[pool.Group.Name]
				if tm := m.state.Templates[pool.LaunchTemplate.Name]; exists && len(tm.Versions) == 0 {
					t.Fatalf("the group %s has no template, and its revision fits: %+v", g.Name, tm)
				}
			}
		}
	})
	if corrections == 0 {
		t.Error("no plan put anything back: the test shows nothing")
	}
}

// A group that somebody deleted is not made again while its target is held: the pool waits for
// a commit and says so, and nothing looks again as if it were on its way.
func TestADeletedGroupOfAHeldTargetRests(t *testing.T) {
	m, list := newModel(), []intent.Pool{groupPool("a", "m5.large", 2), groupPool("b", "m5.large", 2)}
	converge(t, m, testInput(list...))
	delete(m.state.Groups, list[0].Group.Name)
	in := testInput(list...)
	in.Policy.Fallback = &model.Fallback{Revision: fmt.Sprintf("%040d", 1), Recorded: true}
	settle(&in)
	p, full := m.pass(t, in)
	if s := Statuses(full, p)[0]; len(p.Steps) != 0 || s.Converged || !s.Rests() || s.Ready().Reason != ReasonHeld {
		t.Errorf("%v, and the pool is %s: %+v", p.Steps, s.Phase, s.Ready())
	}
}

// What is said of a hold is true for who reads it: a revision of which AWS has yet to answer is
// not called unfit, and what does not fit is not called held to.
func TestWhatAHoldSays(t *testing.T) {
	revision := fmt.Sprintf("%040d", 1)
	for want, h := range map[string]*Fallback{
		"held to 0000000: the followed commit cannot be rendered: a.yaml:1: x":                                                                       {Revision: revision, Why: "a.yaml:1: x", Verdict: lastgood.Verdict{Answer: lastgood.Fits}},
		"only observed: the followed commit cannot be rendered: a.yaml:1: x; weir cannot tell yet whether 0000000 matches AWS: AWS is away":          {Revision: revision, Why: "a.yaml:1: x", Verdict: lastgood.Verdict{Answer: lastgood.Unclear, Why: "AWS is away"}},
		"only observed: the followed commit cannot be rendered: a.yaml:1: x; 0000000 does not match AWS: AWS holds other machines":                   {Revision: revision, Why: "a.yaml:1: x", Verdict: lastgood.Verdict{Answer: lastgood.Differs, Why: "AWS holds other machines"}},
		"only observed: the followed commit cannot be rendered: a.yaml:1: x; none of 3 earlier commits can be applied in its place; the last one: y": {Why: "a.yaml:1: x", Verdict: lastgood.Verdict{Answer: lastgood.Differs, Why: "none of 3 earlier commits can be applied in its place; the last one: y"}},
	} {
		if got := h.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if passing := h.Revision != "" && h.To() == ""; h.Passing() != passing || (h.To() == "") != strings.HasPrefix(want, "only observed") {
			t.Errorf("%q: over in a moment: %v, held to %q", want, h.Passing(), h.To())
		}
	}
}

// Pools of a target that is held, because its followed commit cannot be rendered, are Failed
// with the place of the fault, to whatever they are held, and keep what AWS has.
func TestPoolsOfAHeldTargetAreFailed(t *testing.T) {
	m, list := newModel(), []intent.Pool{groupPool("a", "m5.large", 2), groupPool("b", "m5.large", 2)}
	converge(t, m, testInput(list...))
	const fault = "overlays/prod/web.yaml:3:1: the file is not YAML"
	revision := fmt.Sprintf("%040d", 1)
	in := testInput(list...)
	in.Policy.Fallback, in.Policy.Fault = &model.Fallback{Revision: revision, Why: fault, Recorded: true}, fault
	settle(&in)
	p, full := m.pass(t, in)
	for says, h := range map[string]*Fallback{
		"the pool is held to 0000000: weir corrects drift":  {Revision: revision, Why: fault, Verdict: p.Verdict()},
		"weir changes nothing of the pool until a commit f": {Why: fault, Verdict: lastgood.Verdict{Answer: lastgood.Differs}},
	} {
		for _, s := range WithFaults(full, Statuses(full, p), nil, h) {
			if s.Phase != PhaseFailed || s.Converged || s.FailureReason != "build-failed" || s.FailureMessage != fault || s.ReadyReplicas != 2 {
				t.Errorf("%s: %s %s %q, %d ready", s.Name, s.Phase, s.FailureReason, s.FailureMessage, s.ReadyReplicas)
			}
			if text := s.Ready().Message; !strings.HasPrefix(text, fault+"; "+says) {
				t.Errorf("%s: %s", s.Name, text)
			}
		}
	}
}
