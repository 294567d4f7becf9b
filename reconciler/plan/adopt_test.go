package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// A template that pools share moves to another weir with them, and is left to its
// owner where none of the pools that are asked for uses it.
func TestASharedTemplateMovesWithItsPools(t *testing.T) {
	m := newModel()
	pools := func() []intent.Pool {
		return sharing(0, groupPool("a", "m5.large", 2), groupPool("b", "m5.large", 1), nodegroupPool("n", 1))
	}
	old := testInput(pools()...)
	m.converge(t, old)
	next := testInput(pools()...)
	next.Policy.Instance = "next"
	asked := next
	asked.Policy.Adoption = model.Adoption{Asked: true, From: old.Policy.Instance, Pools: map[string]bool{"default/n": true}}
	p, _ := m.pass(t, asked)
	if got := verbs(p); slices.Contains(got, "adopt launch-template "+sharedGroup) || !slices.Contains(got, "adopt launch-template c-workers-managed") {
		t.Errorf("one pool: %v", got)
	}
	asked.Policy.Adoption.Pools = nil
	p, _ = m.pass(t, asked)
	if p.Runnable() != len(p.Steps) || slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Verb != step.Adopt || s.Later }) {
		t.Errorf("all pools: %v", verbs(p))
	}
	m.apply(p)
	if p, _ = m.pass(t, next); !p.Empty() {
		t.Errorf("afterwards: %v %v", verbs(p), p.Diagnostics)
	}
	if p, _ = m.pass(t, old); p.Runnable() != 0 {
		t.Errorf("the former owner would do %v", verbs(p))
	}
}

// Where an adopted group stays as it is, whatever it is set to: the table says
// what the versions hold beside the wanted content, which version is the default,
// what the group is set to and what its machines run.
func TestAnAdoptedGroupsReference(t *testing.T) {
	const wanted, tokens, other = "", "user data", "key"
	for name, c := range map[string]struct {
		versions []string // from 1
		standard int64
		group    string
		machines string
		want     []string
	}{
		"the newest, by alias":       {versions: []string{tokens, wanted}, standard: 1, group: "$Latest", machines: "1"},
		"the newest, by number":      {versions: []string{tokens, wanted}, standard: 1, group: "2", machines: "2"},
		"the default, by alias":      {versions: []string{wanted, other}, standard: 1, group: "$Default", machines: "1"},
		"the default of no number":   {versions: []string{other, wanted, tokens}, standard: 2, group: "", machines: "2"},
		"equal ones":                 {versions: []string{wanted, wanted}, standard: 1, group: "1", machines: "1"},
		"equal ones, machines older": {versions: []string{wanted, wanted}, standard: 1, group: "$Latest", machines: "1"},
		"machines of a deleted one":  {versions: []string{"gone", wanted}, standard: 2, group: "$Latest", machines: "1"},
		"machines of another kind":   {versions: []string{other, wanted}, standard: 1, group: "$Latest", machines: "1", want: []string{"update auto-scaling-group web", "rollout auto-scaling-group web"}},
		"an alias that means another": {versions: []string{other, wanted}, standard: 1, group: "$Default", machines: "1",
			want: []string{"update auto-scaling-group web", "rollout auto-scaling-group web"}},
		"nothing of the kind": {versions: []string{other}, standard: 1, group: "$Latest", machines: "1",
			want: []string{"update auto-scaling-group web", "update launch-template web", "rollout auto-scaling-group web"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			in := testInput(groupPool("web", "m5.large", 2))
			m.converge(t, in)
			tm, g := m.state.Templates["web"], m.state.Groups["web"]
			data := tm.Versions[1].Data
			tm.Versions, tm.Missing, tm.DefaultVersion, tm.LatestVersion = map[int64]observed.TemplateVersion{}, map[int64]bool{}, c.standard, int64(len(c.versions))
			for i, kind := range c.versions {
				v := observed.TemplateVersion{Number: int64(i + 1), Data: data}
				switch kind {
				case tokens:
					v.Data.UserData = "b3RoZXI="
				case other:
					v.Data.KeyName = "other"
				case "gone":
					tm.Missing[v.Number] = true
					continue
				}
				tm.Versions[v.Number] = v
			}
			m.state.Templates["web"] = tm
			g.Template.Version = c.group
			g.Instances = slices.Clone(g.Instances)
			for i := range g.Instances {
				g.Instances[i].Template.Version = c.machines
			}
			m.state.Groups["web"] = g
			p, _ := m.pass(t, in)
			if got := verbs(p); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v\n%v", got, c.want, p.Diagnostics)
			}
		})
	}
}

// Adopting changes tags alone, so a target that is suspended or in report mode is adopted
// where somebody asks for it, and an annotation that stands there is not heeded. weir
// leaves alone a pool that Git itself pauses.
func TestAdoptingWhatIsHeld(t *testing.T) {
	key := groupPool("web", "m5.large", 2).Key.String()
	for name, c := range map[string]struct {
		change func(*model.Input)
		asked  step.Hold
	}{
		"paused":           {func(in *model.Input) { in.Set.Pools[0].Paused = true }, step.HeldPaused},
		"report mode":      {func(in *model.Input) { in.Policy.ReportOnly = true }, ""},
		"suspended":        {func(in *model.Input) { in.Policy.Suspended, in.Policy.Gates.Suspended = true, "suspended by ann" }, ""},
		"a suspended pool": {func(in *model.Input) { in.Policy.Gates.Pools = map[string]string{key: "suspended by ann"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			in := testInput(groupPool("web", "m5.large", 2))
			m.converge(t, in)
			in.Policy.Instance = "next"
			in.Policy.Adoption = model.Adoption{Asked: true, From: testPolicy().Instance}
			c.change(&in)
			p, _ := m.pass(t, in)
			want := []string{"adopt auto-scaling-group web", "adopt launch-template web"}
			if c.asked != "" {
				want[0], want[1] = want[0]+" held:"+string(c.asked), want[1]+" held:"+string(c.asked)
			}
			if got := verbs(p); !slices.Equal(got, want) || (p.Runnable() == 0) != (c.asked != "") {
				t.Errorf("asked for: got %v, want %v", got, want)
			}

			for n, g := range m.state.Groups {
				g.Tags = nil
				m.state.Groups[n] = g
			}
			for n, tm := range m.state.Templates {
				tm.Tags = nil
				m.state.Templates[n] = tm
			}
			in.Policy.Adoption = model.Adoption{Annotated: true}
			in.Set.Pools[0].Adopt = true
			p, _ = m.pass(t, in)
			if p.Runnable() != 0 || len(p.Steps) == 0 || p.Steps[0].Verb != step.Adopt {
				t.Fatalf("annotated: %v", verbs(p))
			}
			if s := p.Steps[0]; c.asked == "" && !strings.Contains(s.HeldReason, "weir adopt --config FILE "+in.Policy.Target+" adopts it anyway, which changes only tags") {
				t.Errorf("annotated: held: %s", s.HeldReason)
			}
		})
	}
}
