package plan

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// wanting are pools that share a template, "name=content", each with a content of
// its own in its key pair.
func wanting(keep int32, pools ...string) []intent.Pool {
	var out []intent.Pool
	for _, text := range pools {
		name, content, _ := strings.Cut(text, "=")
		p := groupPool(name, "m5.large", 1)
		p.LaunchTemplate.Data.KeyName = content
		out = append(out, p)
	}
	return sharing(keep, out...)
}

// pinned says which version of the shared template each group is set to, and which
// version is the default one.
func (m *fakeAWS) pinned() string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m.state.Groups)) {
		out = append(out, name+" "+m.state.Groups[name].Template.Version)
	}
	return strings.Join(append(out, "default "+strconv.FormatInt(m.state.Templates[sharedGroup].DefaultVersion, 10)), ", ")
}

// makes are the steps of a plan that make a version of the shared template, each
// with the pools that it is for.
func makes(p *Plan) []string {
	var out []string
	for _, s := range p.Steps {
		switch s.Do.(type) {
		case step.CreateLaunchTemplate, step.CreateLaunchTemplateVersion:
			out = append(out, strings.Join(s.Pools, ", ")+string(s.Held))
		}
	}
	return out
}

func TestPoolsThatNeedOtherContentRunOtherVersionsOfOneTemplate(t *testing.T) {
	m := newModel()
	in := testInput(wanting(0, "a=old", "b=old", "c=other")...)
	p, _ := m.pass(t, in)
	if d := cmp.Diff([]string{"default/a, default/b", "default/c"}, makes(p)); d != "" {
		t.Fatalf("versions, each once (-want +got):\n%s", d)
	}
	m.apply(p)
	if got := m.pinned(); got != "a 1, b 1, c 2, default 1" {
		t.Fatalf("after one pass: %s", got)
	}
	if steps := m.converge(t, in); len(steps) != 0 {
		t.Errorf("afterwards: %+v", steps)
	}

	// One of two is upgraded: a version and one rollout, and the default stays.
	in = testInput(wanting(0, "a=old", "b=new", "c=other")...)
	p, planned := m.pass(t, in)
	if d := cmp.Diff([]string{"update launch-template " + sharedGroup, "rollout auto-scaling-group b"}, verbs(p)); d != "" {
		t.Errorf("the upgrade of one (-want +got):\n%s", d)
	}
	if s := LaunchConfigStatuses(planned, p)[0]; s.Ready || s.upToDate() {
		t.Errorf("status: %+v", s)
	}
	m.converge(t, in)
	if got := m.pinned(); got != "a 1, b 3, c 2, default 1" {
		t.Errorf("one upgraded: %s", got)
	}
	p, planned = m.pass(t, in)
	want := []SharedVersion{{1, true, []string{"default/a"}, []string{"default/a"}}, {2, false, []string{"default/c"}, []string{"default/c"}}, {3, false, []string{"default/b"}, []string{"default/b"}}}
	if s := LaunchConfigStatuses(planned, p)[0]; !s.Ready || s.Conditions[1].Status != "True" || cmp.Diff(want, s.Versions) != "" {
		t.Errorf("status: %+v\n%s", s, cmp.Diff(want, s.Versions))
	}

	// The others follow to the version that is there, and then the default moves.
	in = testInput(wanting(0, "a=new", "b=new", "c=new")...)
	p, planned = m.pass(t, in)
	if d := cmp.Diff([]string{"rollout auto-scaling-group a", "rollout auto-scaling-group c"}, verbs(p)); d != "" {
		t.Errorf("the others (-want +got):\n%s", d)
	}
	if s := LaunchConfigStatuses(planned, p)[0]; !s.Ready || s.Conditions[1].Status != "False" || len(s.Versions[2].WantedBy) != 3 {
		t.Errorf("status: %+v", s)
	}
	m.converge(t, in)
	if got := m.pinned(); got != "a 3, b 3, c 3, default 3" {
		t.Errorf("all upgraded: %s", got)
	}

	// Back: the version that it was is found again.
	in = testInput(wanting(0, "a=old", "b=new", "c=new")...)
	if p, _ = m.pass(t, in); len(makes(p)) != 0 {
		t.Errorf("back: %v", verbs(p))
	}
	m.converge(t, in)
	if got := m.pinned(); got != "a 1, b 3, c 3, default 3" {
		t.Errorf("back: %s", got)
	}
}

// Versions that were made before weir was stopped, and that nothing runs yet, are
// found by what they hold.
func TestVersionsThatNothingRunsYetAreFound(t *testing.T) {
	m := newModel()
	m.converge(t, testInput(wanting(0, "a=1", "b=1", "c=1")...))
	in := testInput(wanting(0, "a=2", "b=3", "c=4")...)
	p, _ := m.pass(t, in)
	p.Steps = slices.DeleteFunc(p.Steps, func(s step.Step) bool { return s.LaunchConfig == "" })
	m.apply(p)
	if n := m.state.Templates[sharedGroup].LatestVersion; n != 4 {
		t.Fatalf("%d versions", n)
	}
	if p, _ = m.pass(t, in); len(makes(p)) != 0 || len(p.Steps) != 3 {
		t.Errorf("after the stop: %v", verbs(p))
	}
	m.converge(t, in)
	if got := m.pinned(); got != "a 2, b 3, c 4, default 1" {
		t.Errorf("%s", got)
	}
}

// Somebody's copy of a description does not make a version what it says, wherever
// among the versions it is.
func TestAVersionThatOnlySaysItIsTheWantedOneIsNotTaken(t *testing.T) {
	m := newModel()
	m.converge(t, testInput(wanting(0, "a=1", "b=1")...))
	in := testInput(wanting(0, "a=2", "b=1")...)
	p, _ := m.pass(t, in)
	made := p.Steps[0].Do.(step.CreateLaunchTemplateVersion)
	bad := made
	bad.Data.KeyName = "somebody's"
	m.do(bad, step.Made{})
	other := made
	other.Description, other.Data.KeyName = "by hand", "x"
	m.do(other, step.Made{})
	m.converge(t, in)
	tm := m.state.Templates[sharedGroup]
	if got := m.pinned(); got != "a 4, b 1, default 1" || tm.Versions[4].Data.KeyName != "2" {
		t.Errorf("%s: %+v", got, tm.Versions[4])
	}
}

// weir keeps versions that a pool runs or wants, however old, and deletes in turn those that only a deleted pool ran.
func TestPruningSparesWhatPoolsRunAndWant(t *testing.T) {
	m := newModel()
	pools := func(step int, stuck bool) model.Input {
		list := wanting(1, "a=one", "b=two", "c="+fmt.Sprint(step))
		if !stuck {
			return testInput(list...)
		}
		list[0].LaunchTemplate.Data.KeyName = "never rolled out"
		return testInput(list...)
	}
	m.converge(t, testInput(wanting(1, "a=one", "b=two", "c=0", "d=gone")...))
	// The version that a wants is made, and its rollout fails.
	p, _ := m.pass(t, pools(0, true))
	for _, s := range p.Steps {
		if s.LaunchConfig != "" {
			m.do(s.Do, step.Made{})
		}
	}
	wanted := m.state.Templates[sharedGroup].LatestVersion
	m.state.Refreshes["a"] = observed.Refresh{ID: "r", Status: "Failed", Template: observed.TemplateRef{ID: m.state.Templates[sharedGroup].ID, Name: sharedGroup, Version: strconv.FormatInt(wanted, 10)}}
	for step := range 6 {
		m.converge(t, pools(step, true))
	}
	tm := m.state.Templates[sharedGroup]
	a, b, c := model.VersionOf(tm, m.state.Groups["a"].Template), model.VersionOf(tm, m.state.Groups["b"].Template), model.VersionOf(tm, m.state.Groups["c"].Template)
	for name, n := range map[string]int64{"a runs": a, "b runs": b, "c runs": c, "a wants": wanted, "is default": tm.DefaultVersion} {
		if tm.Versions[n].Number == 0 {
			t.Errorf("the version that %s is gone: %d of %v", name, n, slices.Sorted(maps.Keys(tm.Versions)))
		}
	}
	if len(tm.Versions) > 7 || a == wanted {
		t.Errorf("versions %v, a runs %d and wants %d", slices.Sorted(maps.Keys(tm.Versions)), a, wanted)
	}
	for _, v := range tm.Versions {
		if v.Data.KeyName == "gone" {
			t.Errorf("version %d is still there, which a pool ran that is gone", v.Number)
		}
	}
}

// A pool that waits holds up no other, and weir makes no version for a paused pool.
func TestWhatOnePoolWaitsForHoldsUpNoOther(t *testing.T) {
	m := newModel()
	list := wanting(0, "a=1", "b=2", "c=3")
	list[0].Paused = true
	missing := imageLookup
	missing.Name = "not-there-*"
	list[1].LaunchTemplate.Image = missing
	in := testInput(list...)
	in.Answers = maps.Clone(in.Answers)
	in.Answers[missing] = observed.Answer{Problem: "no image", Code: "image-not-found"}
	p, _ := m.pass(t, in)
	if d := cmp.Diff([]string{"default/c", "default/apaused"}, makes(p)); d != "" {
		t.Errorf("versions (-want +got):\n%s", d)
	}
	text := fmt.Sprint(p.Diagnostics)
	if strings.Count(text, "[image-not-found]") != 1 || strings.Count(text, "[launch-config-not-ready]") != 1 {
		t.Errorf("diagnostics: %s", text)
	}
	m.apply(p)
	if got := m.pinned(); got != "c 1, default 1" {
		t.Errorf("%s", got)
	}
}

// Machines fetch the join token that is kept for what they launch by.
func TestPoolsOfASharedTemplateFetchItsJoinToken(t *testing.T) {
	m := newModel()
	list := wanting(0, "a=1", "b=2")
	for i := range list {
		list[i].LaunchTemplate.UserData = intent.UserData{Text: "get " + intent.PlaceholderJoinParameter + "\n", FetchesToken: true}
	}
	in := testInput(list...)
	in.Policy.JoinTokens.Prefix = "/weir"
	m.converge(t, in)
	_, in = m.pass(t, in)
	kept := model.JoinNeedsOf(in, nil).Wanted
	if len(kept) != 1 {
		t.Fatalf("kept: %v", kept)
	}
	for n, v := range m.state.Templates[sharedGroup].Versions {
		text, _ := base64.StdEncoding.DecodeString(v.Data.UserData)
		for _, name := range kept {
			if string(text) != "get "+name+"\n" {
				t.Errorf("version %d: %q, and the token is kept in %s", n, text, name)
			}
		}
	}
}

// The template itself has the tags that its pools have in common: a tag that one
// of them gets is in its version alone.
func TestASharedTemplateHasTheTagsOfAllItsPools(t *testing.T) {
	m := newModel()
	pools := func(tags map[string]string) model.Input {
		list := wanting(0, "a=1", "b=1")
		for i := range list {
			list[i].LaunchTemplate.Tags = map[string]string{"Name": sharedGroup, "team": "web"}
		}
		maps.Copy(list[1].LaunchTemplate.Tags, tags)
		list[1].LaunchTemplate.Data.TagSpecifications = []intent.TemplateTagSpecification{{ResourceType: "instance", Tags: []intent.Tag{{Key: "cost", Value: tags["cost"]}}}}
		return testInput(list...)
	}
	m.converge(t, pools(map[string]string{"cost": "1"}))
	if tags := m.state.Templates[sharedGroup].Tags; tags["team"] != "web" || tags["cost"] != "" {
		t.Errorf("tags: %v", tags)
	}
	p, _ := m.pass(t, pools(map[string]string{"cost": "2"}))
	if d := cmp.Diff([]string{"update launch-template " + sharedGroup, "rollout auto-scaling-group b"}, verbs(p)); d != "" {
		t.Errorf("another tag (-want +got):\n%s", d)
	}
}

// A version that one pool needs goes live for no other, whose group follows the
// newest.
func TestAGroupOnAnAliasKeepsItsVersionWhenAnotherPoolGetsOne(t *testing.T) {
	m := newModel()
	m.converge(t, testInput(wanting(0, "a=1", "b=1")...))
	g := m.state.Groups["a"]
	g.Template.Version = "$Latest"
	m.state.Groups["a"] = g
	in := testInput(wanting(0, "a=1", "b=2")...)
	p, _ := m.pass(t, in)
	m.apply(p)
	if n := m.state.Templates[sharedGroup].LatestVersion; n != 1 || m.pinned() != "a 1, b 1, default 1" {
		t.Errorf("%d versions before the group is pinned: %s", n, m.pinned())
	}
	m.converge(t, in)
	if got := m.pinned(); got != "a 1, b 2, default 1" {
		t.Errorf("%s", got)
	}
}

// After any edits, removals and holds, and stops at any step, each pool runs the content that it wants, equal content is one version, and nothing
// runs a deleted version.
func TestRandomContentsOfOneTemplateConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		content, paused := map[string]string{"a": "k"}, map[string]bool{}
		input := func() model.Input {
			var users []string
			for _, n := range slices.Sorted(maps.Keys(content)) {
				users = append(users, n+"="+content[n])
			}
			list := wanting(2, users...)
			for i := range list {
				list[i].Paused = paused[list[i].Key.Name]
			}
			in := testInput(append([]intent.Pool{groupPool("own", "m5.large", 1)}, list...)...)
			in.Policy.Prune.Count = 9
			return in
		}
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		pass := func(t *rapid.T, steps int) {
			p, _ := m.pass(t, input())
			p.Steps = p.Steps[:min(steps, len(p.Steps))]
			made := step.Made{}
			for _, s := range p.Steps {
				if s.Held == "" && !s.Later && !step.Unmade(step.WithTemplate(s.Do, made)) {
					m.do(step.WithTemplate(s.Do, made), made)
				}
			}
			for n, g := range m.state.Groups {
				if tm := m.state.Templates[g.Template.Name]; tm.ID != g.Template.ID || tm.Versions[model.VersionOf(tm, g.Template)].Number == 0 {
					t.Fatalf("group %s launches from %v, which is gone", n, g.Template)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"edit": func(t *rapid.T) {
				content[name.Draw(t, "pool")] = rapid.SampledFrom([]string{"k", "l", "m", "n"}).Draw(t, "content")
			},
			"drop":                   func(t *rapid.T) { delete(content, name.Draw(t, "pool")) },
			"pause":                  func(t *rapid.T) { n := name.Draw(t, "pool"); paused[n] = !paused[n] },
			"a pass":                 func(t *rapid.T) { pass(t, 99) },
			"a pass that is stopped": func(t *rapid.T) { pass(t, rapid.IntRange(0, 4).Draw(t, "steps")) },
			"":                       func(*rapid.T) {},
		})
		clear(paused)
		m.converge(t, input())
		tm := m.state.Templates[sharedGroup]
		version := map[string]int64{}
		for n, want := range content {
			v := model.VersionOf(tm, m.state.Groups[n].Template)
			if tm.Versions[v].Data.KeyName != want {
				t.Fatalf("pool %s runs %d of %v", n, v, slices.Sorted(maps.Keys(tm.Versions)))
			}
			if other, ok := version[want]; ok && other != v {
				t.Fatalf("content %s is in %d and %d", want, other, v)
			}
			version[want] = v
		}
		if len(version) == 1 && !slices.Contains(slices.Collect(maps.Values(version)), tm.DefaultVersion) {
			t.Fatalf("all run %v, the default is %d", version, tm.DefaultVersion)
		}
	})
}

// Groups that launch from versions of somebody else's, of equal and of other content,
// are taken over with their shared template: nothing rolls but what differs.
func TestASharedTemplateIsAdoptedWithItsVersions(t *testing.T) {
	m := newModel()
	in := testInput(wanting(0, "a=1", "b=2")...)
	m.converge(t, in)
	tm := m.state.Templates[sharedGroup]
	tm.Tags = nil
	tm.Versions = maps.Clone(tm.Versions)
	for n, v := range tm.Versions {
		v.Description = "by hand"
		tm.Versions[n] = v
	}
	m.state.Templates[sharedGroup] = tm
	for n, g := range m.state.Groups {
		g.Tags = map[string]observed.GroupTag{}
		m.state.Groups[n] = g
	}
	in.Policy.Adoption = model.Adoption{Asked: true}
	p, _ := m.pass(t, in)
	for _, s := range p.Steps {
		if s.Verb != step.Adopt {
			t.Errorf("%s %s while adopting", s.Verb, s.Name)
		}
	}
	m.apply(p)
	in.Policy.Adoption = model.Adoption{}
	if p, _ = m.pass(t, in); p.Runnable() != 0 {
		t.Errorf("afterwards: %v", verbs(p))
	}
	in = testInput(wanting(0, "a=1", "b=3")...)
	p, _ = m.pass(t, in)
	if d := cmp.Diff([]string{"update launch-template " + sharedGroup, "update auto-scaling-group b", "rollout auto-scaling-group b"}, verbs(p)); d != "" {
		t.Errorf("an edit of one (-want +got):\n%s", d)
	}
	m.converge(t, in)
	if got := m.pinned(); got != "a 1, b 3, default 1" {
		t.Errorf("%s", got)
	}
}
