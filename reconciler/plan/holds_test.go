package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

func heldOf(p *Plan) []string {
	out := []string{}
	for _, s := range p.Steps {
		out = append(out, string(s.Verb)+":"+string(s.Held))
	}
	return out
}

// changed is a fleet with one pool that rolls, one that is new and one that only
// has another size.
func changed(t *testing.T) (*fakeAWS, model.Input) {
	t.Helper()
	m := newModel()
	converge(t, m, testInput(groupPool("web", "m5.large", 3), groupPool("api", "m5.large", 3)))
	api := groupPool("api", "m5.large", 3)
	api.Group.MaxSize++
	return m, testInput(groupPool("web", "m5.xlarge", 3), groupPool("new", "m5.large", 1), api)
}

func TestGatesHoldWhatTheySay(t *testing.T) {
	m, in := changed(t)
	free, _ := m.pass(t, in)
	digest := free.Digest()
	full := GrantOf(free)
	other := full
	other.Digest = "another"
	begun := other
	begun.Exact = false
	agreed := AgreementOf(free)
	changed, followed := agreed, agreed
	changed.Digest = "another"
	followed.Digest, followed.First = "another", false
	part := GrantOf(&Plan{Steps: slices.DeleteFunc(slices.Clone(free.Steps), func(s step.Step) bool { return s.Pool != "default/web" })})
	part.Exact = false
	none := []string{"update:", "create:", "create:", "update:", "rollout:"}
	all := func(h step.Hold) []string {
		out := slices.Clone(none)
		for i := range out {
			out[i] += string(h)
		}
		return out
	}
	tests := map[string]struct {
		gates     model.Gates
		suspended bool
		want      []string
		reason    string
	}{
		"nothing":                  {want: none},
		"a closed window":          {gates: model.Gates{Window: "opens on Monday"}, want: []string{"update:", "create:", "create:", "update:", "rollout:window"}, reason: "opens on Monday"},
		"a wave":                   {gates: model.Gates{Wave: "waits for canary", Window: "x"}, want: all(step.HeldWave), reason: "waits for canary"},
		"review":                   {gates: model.Gates{AsReviewed: true, Wave: "x"}, want: all(step.HeldApproval), reason: "weir approve " + digest},
		"review, approved":         {gates: model.Gates{AsReviewed: true, Grant: &full}, want: none},
		"review, another plan":     {gates: model.Gates{AsReviewed: true, Grant: &other}, want: all(step.HeldApproval)},
		"review, begun":            {gates: model.Gates{AsReviewed: true, Grant: &begun}, want: none},
		"review, one pool of it":   {gates: model.Gates{AsReviewed: true, Grant: &part}, want: []string{"update:approval", "create:approval", "create:approval", "update:", "rollout:"}},
		"weir itself":              {gates: model.Gates{Waits: "a render", Window: "x"}, want: []string{"update:waiting", "create:waiting", "create:waiting", "update:waiting", "rollout:window"}, reason: "a render"},
		"a suspended pool":         {gates: model.Gates{Pools: map[string]string{"default/web": "by ann"}}, want: []string{"update:", "create:", "create:", "update:suspended", "rollout:suspended"}, reason: "by ann"},
		"a suspended target":       {gates: model.Gates{Suspended: "by ann", Window: "x"}, suspended: true, want: all(step.HeldSuspended), reason: "by ann"},
		"agreed to":                {gates: model.Gates{Agreed: &agreed}, want: none},
		"agreed to another plan":   {gates: model.Gates{Agreed: &changed}, want: all(step.HeldApproval)},
		"what follows it":          {gates: model.Gates{Agreed: &followed}, want: none},
		"agreed to, not reviewed":  {gates: model.Gates{Agreed: &agreed, AsReviewed: true}, want: all(step.HeldApproval), reason: "weir approve " + digest},
		"deletions not agreed to":  {gates: model.Gates{Deletions: "--yes was not given"}, want: none},
		"an approval and a window": {gates: model.Gates{AsReviewed: true, Grant: &full, Window: "x"}, want: []string{"update:", "create:", "create:", "update:", "rollout:window"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := in
			in.Policy.Gates, in.Policy.Suspended = tc.gates, tc.suspended
			p, _ := m.pass(t, in)
			if d := cmp.Diff(tc.want, heldOf(p)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if p.Digest() != digest {
				t.Error("a hold changes the digest")
			}
			found := tc.reason == ""
			for _, s := range p.Steps {
				found = found || s.HeldReason == tc.reason
				if s.Held == "" && s.HeldReason != "" {
					t.Errorf("a step that runs has the reason %q", s.HeldReason)
				}
			}
			if !found {
				t.Errorf("no step says %q: %+v", tc.reason, p.Steps)
			}
		})
	}
}

func TestAPlanWithoutSecretsCannotBeApproved(t *testing.T) {
	m, in := changed(t)
	in.Policy.Secretless, in.Policy.Gates = true, model.Gates{AsReviewed: true, Grant: &model.Grant{Exact: true}}
	p, _ := m.pass(t, in)
	if p.Granted && p.Digest() == "" {
		t.Error("a plan without a digest was taken for an approved one")
	}
	for _, s := range p.Steps {
		if s.Held != step.HeldApproval || !strings.Contains(s.HeldReason, "cannot be approved") {
			t.Errorf("step %s %s: held %q, %q", s.Verb, s.Name, s.Held, s.HeldReason)
		}
	}
}

func TestAnApprovalLiftsTheLimitForItsPlanAlone(t *testing.T) {
	m := newModel()
	pools := testInput()
	for i := range 6 {
		name := fmt.Sprintf("p%d", i)
		pools.Set.Pools = append(pools.Set.Pools, groupPool(name, "m5.large", 1))
	}
	converge(t, m, testInput(pools.Set.Pools...))
	in := testInput(pools.Set.Pools[:2]...)
	in.Policy.Prune.Enabled = true
	p, _ := m.pass(t, in)
	if !slices.Contains(codes(p), "prune-refused") || p.Runnable() != 0 || p.Steps[0].HeldReason != "weir approve "+p.Digest() {
		t.Fatalf("unapproved: %v %v %q", codes(p), verbs(p), p.Steps[0].HeldReason)
	}
	for _, d := range p.Diagnostics {
		if d.Code == "prune-refused" && !strings.Contains(d.Detail, "weir approve") {
			t.Errorf("the hint does not say that an approval helps: %q", d.Detail)
		}
	}
	grant := GrantOf(p)

	more := testInput(pools.Set.Pools[:1]...)
	more.Policy.Prune.Enabled, more.Policy.Gates.Grant = true, &grant
	if p, _ := m.pass(t, more); p.Runnable() != 0 || p.Granted {
		t.Errorf("the approval lets another plan run: %v", verbs(p))
	}

	in.Policy.Gates.Grant = &grant
	p, _ = m.pass(t, in)
	if p.Runnable() == 0 || !p.Granted || slices.Contains(codes(p), "prune-refused") {
		t.Fatalf("approved: %v %v", codes(p), verbs(p))
	}
	begun := grant
	begun.Exact = false
	in.Policy.Gates.Grant = &begun
	converge(t, m, in)
	if len(m.state.Groups) != 2 || len(m.state.Templates) != 2 {
		t.Errorf("left: %d groups, %d templates", len(m.state.Groups), len(m.state.Templates))
	}
}

func TestADeletionIsAgreedToByItsPool(t *testing.T) {
	m := newModel()
	one, two := groupPool("one", "m5.large", 1), groupPool("two", "m5.large", 1)
	converge(t, m, testInput(one, two))
	in := testInput(one)
	in.Policy.Prune.Enabled = true
	shown, _ := m.pass(t, in)
	full := AgreementOf(shown)
	follows := full
	follows.First, follows.Digest = false, ""
	other := follows
	other.Deletes = map[string]bool{"default/one": true}
	approved := GrantOf(shown)
	for name, tc := range map[string]struct {
		gates model.Gates
		runs  bool
	}{
		"nobody was asked":    {model.Gates{}, true},
		"not agreed to":       {model.Gates{Deletions: "--yes was not given"}, false},
		"approved":            {model.Gates{Deletions: "--yes was not given", Grant: &approved}, true},
		"shown":               {model.Gates{Agreed: &full}, true},
		"shown in a pass ago": {model.Gates{Agreed: &follows}, true},
		"never shown":         {model.Gates{Agreed: &other}, false},
	} {
		in.Policy.Gates = tc.gates
		p, _ := m.pass(t, in)
		if runs := p.Runnable() > 0; len(p.Steps) == 0 || runs != tc.runs {
			t.Errorf("%s: runs %v: %v", name, runs, heldOf(p))
		}
	}
}

func TestRolloutsTakeTurns(t *testing.T) {
	rollout := func(target, pool string) *Plan {
		return &Plan{Target: target, Steps: []step.Step{
			{Verb: step.Update, Pool: pool}, {Verb: step.Rollout, Pool: pool, Do: step.StartRefresh{}},
		}}
	}
	plans := func() []*Plan { return []*Plan{rollout("a", "x/1"), nil, rollout("b", "x/2"), rollout("c", "x/3")} }
	ran := func(list []*Plan) string {
		out := ""
		for _, p := range list {
			if p != nil && p.Steps[1].Held == "" {
				out += p.Target
			}
		}
		return out
	}
	var queue []Waiting
	for n, want := range []string{"a", "b", "c", "a"} {
		list := plans()
		queue = LimitRollouts(list, 1, 0, queue, nil)
		if got := ran(list); got != want {
			t.Errorf("pass %d: %q runs, want %q", n, got, want)
		}
		if list[0].Steps[0].Held != "" {
			t.Error("what is no rollout is held")
		}
	}
	for name, tc := range map[string]struct {
		limit, moving int
		refused       map[Waiting]bool
		want          string
	}{
		"no limit":           {0, 9, nil, "abc"},
		"all fit":            {3, 0, nil, "abc"},
		"one moves":          {2, 1, nil, "a"},
		"too many move":      {1, 5, nil, ""},
		"refused takes none": {1, 0, map[Waiting]bool{{"a", "x/1"}: true}, "ab"},
	} {
		list := plans()
		LimitRollouts(list, tc.limit, tc.moving, nil, tc.refused)
		if got := ran(list); got != tc.want {
			t.Errorf("%s: %q runs, want %q", name, got, tc.want)
		}
	}
}

// TestNoRolloutStarves has pools that want to roll again and again: each gets its
// turn within as many passes as there are pools.
func TestNoRolloutStarves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pools := rapid.IntRange(1, 8).Draw(rt, "pools")
		limit := rapid.IntRange(1, 3).Draw(rt, "limit")
		var queue []Waiting
		waits := make([]int, pools)
		for range 40 {
			p := &Plan{Target: "t"}
			wanting := []int{}
			for i := range pools {
				if waits[i] > 0 || rapid.Bool().Draw(rt, "wants") {
					p.Steps = append(p.Steps, step.Step{Verb: step.Rollout, Pool: fmt.Sprint(i), Do: step.StartRefresh{}})
					wanting = append(wanting, i)
				}
			}
			queue = LimitRollouts([]*Plan{p}, limit, 0, queue, nil)
			started := 0
			for n, i := range wanting {
				if p.Steps[n].Held == "" {
					started++
					waits[i] = 0
					continue
				}
				if waits[i]++; waits[i] > pools {
					rt.Fatalf("pool %d waits for the %dth pass", i, waits[i])
				}
			}
			if started > limit || started < min(limit, len(wanting)) {
				rt.Fatalf("%d started of %d with a limit of %d", started, len(wanting), limit)
			}
		}
	})
}
