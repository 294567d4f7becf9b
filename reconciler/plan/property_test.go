package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// The machine edits Git and AWS at random and plans in between. Whatever comes:
// what is not ours never changes, no pass deletes more than the limit, and once
// left alone everything converges and stays silent.
func TestRandomEditsAndDriftConvergeAndSpareWhatIsForeign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		foreignGroup := observed.Group{Name: "p3", MinSize: 1, MaxSize: 2, Tags: map[string]observed.GroupTag{observed.TagOwner: {Value: "other"}}}
		foreignTemplate := observed.Template{ID: "lt-foreign", Name: "p4", LatestVersion: 1, DefaultVersion: 1, Versions: map[int64]observed.TemplateVersion{1: {Number: 1}}}
		m.state.Groups["p3"], m.state.Templates["p4"] = foreignGroup, foreignTemplate
		pools := map[string]intent.Pool{}
		input := func() model.Input {
			var list []intent.Pool
			for _, n := range slices.Sorted(maps.Keys(pools)) {
				list = append(list, pools[n])
			}
			return testInput(list...)
		}
		name := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("p%d", rapid.IntRange(0, 6).Draw(t, "n")) })
		onePass := func() {
			in := input()
			before := len(m.observe(in.Policy.Instance).Groups)
			p, _ := m.pass(t, in)
			deletes := 0
			for _, s := range p.Steps {
				if _, ok := s.Do.(step.DeleteGroup); ok && s.Held == "" {
					deletes++
				}
			}
			if limit := max(1, before*model.DefaultPrunePercent/100); deletes > limit {
				t.Fatalf("%d groups deleted in one pass, the limit is %d", deletes, limit)
			}
			m.apply(p)
		}
		t.Repeat(map[string]func(*rapid.T){
			"edit Git": func(t *rapid.T) {
				n := name.Draw(t, "pool")
				p := groupPool(n, rapid.SampledFrom([]string{"m5.large", "m5.xlarge"}).Draw(t, "type"), rapid.Int32Range(0, 12).Draw(t, "replicas"))
				p.Replicas.Written = rapid.Bool().Draw(t, "written")
				p.Group.Refresh.Disable = rapid.Bool().Draw(t, "disable")
				pools[n] = p
			},
			"drop a pool": func(t *rapid.T) { delete(pools, name.Draw(t, "pool")) },
			"change sizes in the console": func(t *rapid.T) {
				n := name.Draw(t, "pool")
				g, ok := m.state.Groups[n]
				if !ok || n == "p3" {
					return
				}
				g.MaxSize = rapid.Int32Range(5, 20).Draw(t, "max")
				g.DesiredCapacity = rapid.Int32Range(0, 5).Draw(t, "desired")
				g.Instances = m.launch(g, g.Instances)
				m.state.Groups[n] = g
			},
			"delete a group in the console": func(t *rapid.T) {
				if n := name.Draw(t, "pool"); n != "p3" {
					delete(m.state.Groups, n)
				}
			},
			"move the default version": func(t *rapid.T) {
				n := name.Draw(t, "pool")
				if tm, ok := m.state.Templates[n]; ok && n != "p4" {
					tm.DefaultVersion = 1
					m.state.Templates[n] = tm
				}
			},
			"a pass": func(*rapid.T) { onePass() },
			"":       func(*rapid.T) {},
		})
		for range 20 {
			onePass()
		}
		in := input()
		p, _ := m.pass(t, in)
		if n := p.Runnable(); n != 0 {
			t.Fatalf("after 20 passes alone there is still work: %v", verbs(p))
		}
		if d := cmp.Diff(foreignGroup, m.state.Groups["p3"]); d != "" {
			t.Fatalf("the foreign group changed:\n%s", d)
		}
		if d := cmp.Diff(foreignTemplate, m.state.Templates["p4"]); d != "" {
			t.Fatalf("the foreign template changed:\n%s", d)
		}
		for n, pool := range pools {
			if n == "p3" || n == "p4" {
				continue
			}
			g, ok := m.state.Groups[n]
			if !ok || g.MaxSize != pool.Group.MaxSize {
				t.Fatalf("pool %s: group %+v", n, g)
			}
		}
	})
}
