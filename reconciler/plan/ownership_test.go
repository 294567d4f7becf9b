package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

func TestWhatIsNotOursIsAConflictAndStaysUntouched(t *testing.T) {
	foreign := map[string]map[string]string{
		"untagged":      {},
		"other owner":   {observed.TagOwner: "other", observed.TagTarget: "blue", observed.TagSource: "0123456789ab"},
		"other source":  {observed.TagOwner: "prod", observed.TagTarget: "blue", observed.TagSource: "ffffffffffff"},
		"capa":          {observed.TagClusterPrefix + "c": "owned"},
		"eks nodegroup": {observed.TagOwner: "prod", observed.TagTarget: "blue", observed.TagSource: "0123456789ab", observed.TagNodegroup: "ng"},
	}
	for name, tags := range foreign {
		t.Run("group "+name, func(t *testing.T) {
			m, in := newModel(), testInput(groupPool("web", "m5.large", 2), groupPool("api", "m5.large", 1))
			g := observed.Group{Name: "web", MinSize: 1, MaxSize: 1, Tags: map[string]observed.GroupTag{}}
			for k, v := range tags {
				g.Tags[k] = observed.GroupTag{Value: v}
			}
			m.state.Groups["web"] = g
			p, _ := m.pass(t, in)
			m.apply(p)
			if d := cmp.Diff(g, m.state.Groups["web"]); d != "" {
				t.Errorf("the foreign group changed (-before +after):\n%s", d)
			}
			if _, ok := m.state.Templates["web"]; ok {
				t.Error("a template was made for a pool in conflict")
			}
			if _, ok := m.state.Groups["api"]; !ok {
				t.Error("the other pool was not made")
			}
			if !strings.Contains(fmt.Sprint(verbs(p)), "held:conflict") {
				t.Errorf("steps: got %v, want a held conflict", verbs(p))
			}
		})
	}
	t.Run("template", func(t *testing.T) {
		m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
		m.state.Templates["web"] = observed.Template{ID: "lt-x", Name: "web", LatestVersion: 1, DefaultVersion: 1, Versions: map[int64]observed.TemplateVersion{1: {Number: 1}}}
		p, _ := m.pass(t, in)
		m.apply(p)
		if len(m.writes) != 0 {
			t.Errorf("writes: got %v, want none", m.writes)
		}
	})
}

func TestOrphansAreDeletedOnlyUnderTheRules(t *testing.T) {
	pools := func(n int) []intent.Pool {
		var out []intent.Pool
		for i := range n {
			out = append(out, groupPool(fmt.Sprintf("p%02d", i), "m5.large", 1))
		}
		return out
	}
	tests := map[string]struct {
		had, want int
		cluster   string // what the pools' tags name
		mutate    func(*model.Input)
		deletes   int // groups deleted in the first pass
		code      string
	}{
		"one of ten":             {had: 10, want: 9, deletes: 1},
		"two of ten":             {had: 10, want: 8, deletes: 2},
		"three of ten":           {had: 10, want: 7, code: "prune-refused"},
		"one of one by emptying": {had: 1, want: 0, code: "prune-refused"},
		"pruning off":            {had: 10, want: 9, mutate: func(in *model.Input) { in.Policy.Prune.Enabled = false }, code: "orphan"},
		"another render broken":  {had: 10, want: 9, mutate: func(in *model.Input) { in.Fleet.Whole = false }, code: "orphan-kept"},
		"its cluster has a topology": {had: 10, want: 9, mutate: func(in *model.Input) {
			in.Set.Clusters = []intent.Cluster{{Key: intent.Key{Namespace: "default", Name: "demo"}, TagName: "demo", Topology: true}}
		}, code: "orphan-kept"},
		// With a ClusterClass the name of the EKS cluster, and so the tag, is not in Git.
		"an unknown cluster beside a topology": {had: 10, want: 9, mutate: func(in *model.Input) {
			in.Set.Clusters = []intent.Cluster{{Key: intent.Key{Namespace: "default", Name: "other"}, TagName: "other", Topology: true}}
		}, code: "orphan-kept"},
		"another cluster has the topology": {had: 10, want: 9, cluster: "c", mutate: func(in *model.Input) {
			in.Set.Clusters = []intent.Cluster{
				{Key: intent.Key{Namespace: "default", Name: "c"}, TagName: "c"},
				{Key: intent.Key{Namespace: "default", Name: "zz"}, TagName: "zz", Topology: true},
			}
		}, deletes: 1},
		"suspended":              {had: 10, want: 9, mutate: func(in *model.Input) { in.Policy.Suspended = true }},
		"a count as limit":       {had: 10, want: 7, mutate: func(in *model.Input) { in.Policy.Prune.Count = 3 }, deletes: 3},
		"all but one at 100 %":   {had: 3, want: 1, mutate: func(in *model.Input) { in.Policy.Prune.Percent = 100 }, deletes: 2},
		"the last ones at 100 %": {had: 3, want: 0, mutate: func(in *model.Input) { in.Policy.Prune.Percent = 100 }, code: "prune-refused"},
		"allowed by the trailer": {had: 2, want: 0, mutate: func(in *model.Input) {
			in.Policy.Prune.Allowed = map[string]bool{"default/p00": true, "default/p01": true}
		}, deletes: 2},
		"only one of two allowed": {had: 4, want: 0, mutate: func(in *model.Input) { in.Policy.Prune.Allowed = map[string]bool{"default/p00": true} }, deletes: 1, code: "prune-refused"},
		"wanted by another target": {had: 2, want: 1, mutate: func(in *model.Input) {
			in.Fleet.Wanted[model.Claim{Resource: step.AutoScalingGroup, Name: "p01"}] = "green"
			in.Fleet.Wanted[model.Claim{Resource: step.LaunchTemplate, Name: "p01"}] = "green"
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			pools := func(n int) []intent.Pool {
				out := pools(n)
				for i := range out {
					if tc.cluster != "" {
						out[i].Group.Tags[observed.TagClusterPrefix+tc.cluster] = "owned"
						out[i].LaunchTemplate.Tags[observed.TagClusterPrefix+tc.cluster] = "owned"
					}
				}
				return out
			}
			converge(t, m, testInput(pools(tc.had)...))
			m.writes = nil
			in := testInput(pools(tc.want)...)
			if tc.mutate != nil {
				tc.mutate(&in)
			}
			p, _ := m.pass(t, in)
			m.apply(p)
			if got := len(m.writes); got != tc.deletes {
				t.Errorf("deletes: got %v, want %d", m.writes, tc.deletes)
			}
			if tc.code != "" && !strings.Contains(fmt.Sprint(codes(p)), tc.code) {
				t.Errorf("diagnostics: got %v, want %s", codes(p), tc.code)
			}
			if tc.deletes > 0 && tc.code == "" {
				converge(t, m, in)
				if len(m.state.Templates) != tc.want || len(m.state.Groups) != tc.want {
					t.Errorf("left: %d templates, %d groups, want %d of each", len(m.state.Templates), len(m.state.Groups), tc.want)
				}
			}
		})
	}
}

// The limit is a fraction of the pools that have groups. If it counted pools with only a template, or
// with a group in deletion, it would allow too many deletions.
func TestWhatIsGoneRaisesNoLimit(t *testing.T) {
	for name, gone := range map[string]func(m *fakeAWS, pool string){
		"a template alone is left": func(m *fakeAWS, pool string) { delete(m.state.Groups, pool) },
		"the group is going": func(m *fakeAWS, pool string) {
			g := m.state.Groups[pool]
			g.Deleting = true
			m.state.Groups[pool] = g
		},
		"the group is drained": func(m *fakeAWS, pool string) {
			g := m.state.Groups[pool]
			g.MinSize, g.MaxSize, g.DesiredCapacity = 0, 0, 0
			g.Tags[observed.TagDelete] = observed.GroupTag{Value: model.DeleteDrain}
			m.state.Groups[pool] = g
		},
		"it is spared": func(m *fakeAWS, pool string) {
			m.state.Groups[pool].Tags[observed.TagPrune] = observed.GroupTag{Value: "disabled"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var pools []intent.Pool
			for i := range 20 {
				pools = append(pools, groupPool(fmt.Sprintf("p%02d", i), "m5.large", 1))
			}
			m := newModel()
			converge(t, m, testInput(pools...))
			for _, p := range pools[10:] {
				gone(m, p.Group.Name)
			}
			p, _ := m.pass(t, testInput(pools[:7]...)) // three of ten, and 20 % is the limit
			for _, s := range p.Steps {
				if s.Resource == step.AutoScalingGroup && s.Verb == step.Delete && slices.ContainsFunc(pools[7:10], func(p intent.Pool) bool { return p.Group.Name == s.Name }) && s.Held != step.HeldPruneLimit {
					t.Errorf("%s is deleted", s.Name)
				}
			}
			if !strings.Contains(fmt.Sprint(p.Diagnostics), "3 of 10 pools would be deleted, more than the limit of 2") {
				t.Errorf("got %v, want prune-refused", p.Diagnostics)
			}
		})
	}
}

// TestGroupsWithoutTheirPoolCountEach: without the tag that names its pool, each group
// counts against the limit by itself.
func TestGroupsWithoutTheirPoolCountEach(t *testing.T) {
	var pools []intent.Pool
	for i := range 10 {
		pools = append(pools, groupPool(fmt.Sprintf("p%02d", i), "m5.large", 1))
	}
	m := newModel()
	converge(t, m, testInput(pools...))
	for _, p := range pools[7:] {
		delete(m.state.Groups[p.Group.Name].Tags, observed.TagPool)
	}
	p, _ := m.pass(t, testInput(pools[:7]...))
	if n := p.Runnable(); n != 0 || !slices.Contains(codes(p), "prune-refused") {
		t.Errorf("%d steps are run of %v, and it says %v", n, p.Steps, p.Diagnostics)
	}
}

func TestAPoolThatMovesToAnotherTargetIsRetagged(t *testing.T) {
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 2)))
	in := testInput(groupPool("web", "m5.large", 2))
	in.Policy.Target = "green"
	in.Fleet = model.NewFleet(map[string][]model.Claim{"green": model.Claims(in.Set)}, true)
	p, _ := m.pass(t, in)
	for _, s := range p.Steps {
		if s.Reason != "tags differ" {
			t.Errorf("step: got %s %s, want tags only", s.Verb, s.Reason)
		}
	}
	converge(t, m, in)
	if got := m.state.Groups["web"].Tags[observed.TagTarget].Value; got != "green" {
		t.Errorf("target tag: got %s", got)
	}
	in.Policy.OwnTargetOnly, in.Policy.Target = true, "blue"
	if p, _ = m.pass(t, in); !strings.Contains(fmt.Sprint(codes(p)), "conflict") {
		t.Errorf("path mode: got %v, want a conflict", codes(p))
	}
}

func TestTwoTargetsThatWantOneNameAreBothBlocked(t *testing.T) {
	m, in := newModel(), testInput(groupPool("web", "m5.large", 2))
	in.Fleet = model.NewFleet(map[string][]model.Claim{"blue": model.Claims(in.Set), "green": model.Claims(in.Set)}, true)
	p, _ := m.pass(t, in)
	if !p.Empty() || codes(p)[0] != "contested-name" {
		t.Errorf("got %v %v", verbs(p), codes(p))
	}
}
