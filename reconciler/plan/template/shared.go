package template

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Shared is the launch template of an AWSLaunchConfig, planned once for all pools that use it. If
// pools need different content, they run different versions of it.
type Shared struct {
	Config *intent.LaunchConfig
	// Users lists the target's pools that name it, in order.
	Users    []*intent.Pool
	contents []*SharedContent
	Of       map[intent.Key]*SharedContent
	// tags contains the tags on which all of them agree. adopt reports whether one of them may
	// adopt the template.
	tags  map[string]string
	adopt bool
	// problem explains why none of the pools can be planned.
	problem string
	// Hold is the hold on making versions, and on the pools' steps that need them.
	Hold       step.Hold
	HoldReason string
}

// SharedContent is one version of a shared template: the content that some of the pools want.
type SharedContent struct {
	users []*intent.Pool
	want  *Want
	// Version is the wanted version. Known is false while it is unknown.
	Version Version
	Known   bool
	// problem explains why its pools cannot be planned.
	problem string
}

// LaunchConfigsOf returns the AWSLaunchConfigs of a set, in the order of their keys.
func LaunchConfigsOf(set *intent.Set) []*Shared {
	byKey := map[string]*Shared{}
	for i := range set.Pools {
		p := &set.Pools[i]
		if p.LaunchConfig == nil || p.LaunchTemplate == nil {
			continue
		}
		key := p.LaunchConfig.Key.String()
		if byKey[key] == nil {
			byKey[key] = &Shared{Config: p.LaunchConfig, Of: map[intent.Key]*SharedContent{}}
		}
		byKey[key].Users = append(byKey[key].Users, p)
	}
	var out []*Shared
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, byKey[key])
	}
	return out
}

func (s *Shared) Key() string { return s.Config.Key.String() }

// Pools returns the keys of the users.
func (s *Shared) Pools() []string { return keysOf(s.Users) }

func keysOf(pools []*intent.Pool) []string {
	var out []string
	for _, p := range pools {
		out = append(out, p.Key.String())
	}
	return out
}

// AsPool returns a pool that stands for the AWSLaunchConfig. Its template is the one that the given
// users want, and diagnostics about it name the object that declares it.
func (s *Shared) AsPool(users []*intent.Pool) *intent.Pool {
	p := *users[0]
	p.Key = intent.Key{Namespace: step.OwnerOfConfig + s.Config.Key.Namespace, Name: s.Config.Key.Name}
	p.Infrastructure, p.Options = s.Config.Source, s.Config.Options
	p.KeepVersions, p.FollowImages, p.PruneDisabled = s.Config.KeepVersions, s.Config.FollowImages, s.Config.PruneDisabled
	t := *p.LaunchTemplate
	t.Tags, p.LaunchTemplate, p.Adopt = s.tags, &t, s.adopt
	return &p
}

// roughKey differs between most launch templates, so only templates with equal keys are compared in
// full.
type roughKey struct {
	userData intent.UserData
	image    intent.Lookup
	data     string
	tags     int
}

// split groups the users by wanted content. It skips users that cannot be planned.
func (s *Shared) split() {
	alike := map[roughKey][]*SharedContent{}
	for _, u := range s.Users {
		if len(u.Blocked) > 0 {
			continue
		}
		t := u.LaunchTemplate
		l := roughKey{t.UserData, t.Image, string(content.BodyJSON(&t.Data)), len(t.Tags)}
		i := slices.IndexFunc(alike[l], func(x *SharedContent) bool { return reflect.DeepEqual(x.users[0].LaunchTemplate, t) })
		if i < 0 {
			x := &SharedContent{}
			i, alike[l], s.contents = len(alike[l]), append(alike[l], x), append(s.contents, x)
		}
		x := alike[l][i]
		x.users, s.Of[u.Key] = append(x.users, u), x
	}
}

// join merges the users' settings of the template itself.
func (s *Shared) join() {
	s.tags = maps.Clone(s.Users[0].LaunchTemplate.Tags)
	for _, u := range s.Users {
		maps.DeleteFunc(s.tags, func(k, v string) bool { return u.LaunchTemplate.Tags[k] != v })
		s.adopt = s.adopt || u.Adopt
	}
}

// PlanShared plans a template that pools share, before the pools.
func (c Planner) PlanShared(s *Shared) model.Result {
	s.split()
	s.join()
	switch {
	case len(s.contents) == 0 || len(c.In.Fleet.Contested[model.Claim{Resource: step.LaunchTemplate, Name: s.Users[0].LaunchTemplate.Name}]) > 0:
		return c.Result // each pool reports it
	case !slices.ContainsFunc(s.Users, func(p *intent.Pool) bool { return !c.In.Policy.Adoption.Skips(p) }):
		return c.Result
	case c.In.BeingMade(s.Users[0]) != "":
		return c.Result // each pool waits for the cluster
	}
	c.Take(s.answer(c))
	all := c.Fork()
	all.Hold = c.In.HoldOfAll(s.Users)
	all.versionsOf(s, s.AsPool(s.contents[0].users))
	for _, x := range s.contents {
		for _, u := range x.users {
			if x.Known && !x.Version.Made() {
				c.Pools.Of(u.Key).SharedVersion = x.Version.Number
			}
		}
	}
	if all.Blocked {
		s.problem = firstError(all.Diags)
		all.Steps = all.Conflicts
	} else {
		all.awaitPins(s, all.Steps)
		all.Steps = all.Adopted(all.Steps)
	}
	s.Attribute(s.Users, all.Hold, all.Steps, all.Diags)
	c.Take(all.Result)
	return c.Result
}

// answer looks up the wanted content. If a lookup has no answer, only the pools that need it wait.
func (s *Shared) answer(c Planner) (r model.Result) {
	for _, x := range s.contents {
		part := c.Fork()
		part.Said = r.Diags
		want, ok := part.template(s.AsPool(x.users))
		if ok {
			delete(want.tags, observed.TagPool)
			want.tags[observed.TagLaunchConfig] = s.Key()
			x.want = want
		} else {
			x.problem = firstError(part.Diags)
		}
		s.Attribute(x.users, "", nil, part.Diags)
		for _, d := range part.Diags { // a problem of all of them is reported once
			if !slices.ContainsFunc(r.Diags, func(o diag.Diagnostic) bool { return reflect.DeepEqual(o, d) }) {
				r.Diags = append(r.Diags, d)
			}
		}
	}
	return r
}

// refsOf returns the template versions that a pool has in AWS.
func refsOf(in model.Input, p *intent.Pool) []observed.TemplateRef {
	if p.Nodegroup != nil {
		var refs []observed.TemplateRef
		for _, n := range in.NodegroupsOf(p) {
			refs = append(refs, in.NodegroupInUse(n)...)
		}
		return refs
	}
	return in.InUse(in.State.Groups[p.Group.Name])
}

// Attribute assigns steps and diagnostics to the AWSLaunchConfig: under its name, for the given
// users, with the fields of the object that declares it.
func (s *Shared) Attribute(users []*intent.Pool, hold step.Hold, steps []step.Step, diags []diag.Diagnostic) {
	for i := range steps {
		st := &steps[i]
		if st.LaunchConfig != "" {
			continue // a step that makes a version, for the pools that want it
		}
		st.Pool, st.LaunchConfig, st.Pools, st.Wanted = "", s.Key(), keysOf(users), users[0]
		if st.Held == "" {
			st.Held = hold
		}
		for j := range st.Changes {
			ch := &st.Changes[j]
			if at, ok := s.Config.Field(ch.Path); ok && ch.Object == s.Config.Source {
				ch.Path, ch.Field = at, at[1:].String()
			} else if len(ch.Path) > 1 && ch.Path[1] == "additionalTags" {
				ch.Object = users[0].Infrastructure
			}
		}
	}
	for i := range diags {
		p, err := intent.ParsePath(diags[i].Field)
		if err != nil {
			continue
		}
		if at, ok := s.Config.Field(p); ok {
			diags[i].Field = at.String()
		}
	}
}

func firstError(diags []diag.Diagnostic) string {
	for _, d := range diags {
		if d.Severity == diag.Error {
			return d.Summary
		}
	}
	return ""
}

// CodeConfigNotReady is the diagnostic code for a pool whose shared template does not exist and
// cannot be made.
const CodeConfigNotReady = "launch-config-not-ready"

// contentOf returns the content that a pool wants of its shared template.
func (c Planner) contentOf(pool *intent.Pool) *SharedContent {
	return c.Shared[pool.LaunchConfig.Key.String()].Of[pool.Key]
}

// TemplateOf returns the pool's template with its lookups answered: its own, or the template that it
// shares.
func (c Planner) TemplateOf(pool *intent.Pool) (*Want, bool) {
	if pool.LaunchConfig == nil {
		return c.template(pool)
	}
	s, x := c.Shared[pool.LaunchConfig.Key.String()], c.contentOf(pool)
	problem := cmp.Or(s.problem, x.problem)
	if problem != "" {
		c.Blockf(pool, intent.Path{"spec", "launchConfigRef"}, CodeConfigNotReady,
			"it waits for the AWSLaunchConfig "+s.Key()+", whose launch template cannot be brought to what Git says: "+problem, "")
	}
	return x.want, x.want != nil && problem == ""
}

// Common returns the version that all pools run and want. ok is false if they differ.
func (s *Shared) Common(pools model.PoolPlans) (common Version, ok bool) {
	for _, u := range s.Users {
		p := pools.Of(u.Key)
		if !p.RunsShared {
			return Version{}, false
		}
		w := s.Of[u.Key].Version
		if common.Number != 0 && common.Number != w.Number {
			return Version{}, false
		}
		w.TakenOver, w.Foreign = p.TakenOver || common.TakenOver, w.Foreign || common.Foreign
		common = w
	}
	return common, true
}
