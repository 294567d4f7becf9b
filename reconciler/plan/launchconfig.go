package plan

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// sharedTemplate is the launch template of an AWSLaunchConfig, planned once for
// all pools that use it. Pools that need other content run other versions of it.
type sharedTemplate struct {
	config *intent.LaunchConfig
	// users are the pools of the target that name it, in order.
	users    []*intent.Pool
	contents []*sharedContent
	of       map[intent.Key]*sharedContent
	// tags are those that all of them give the template, and adopt says that one of
	// them may take it over.
	tags  map[string]string
	adopt bool
	// problem says why none of the pools can be planned.
	problem string
	// hold keeps versions from being made, and the pools' steps that need them.
	hold       step.Hold
	holdReason string
}

// sharedContent is what some of the pools want of a shared template: one version.
type sharedContent struct {
	users []*intent.Pool
	want  *wantTemplate
	// version is the wanted one; known is false where it cannot be said yet.
	version wantedVersion
	known   bool
	// problem says why its pools cannot be planned.
	problem string
}

// launchConfigsOf are the AWSLaunchConfigs of a set, in order of their keys.
func launchConfigsOf(set *intent.Set) []*sharedTemplate {
	byKey := map[string]*sharedTemplate{}
	for i := range set.Pools {
		p := &set.Pools[i]
		if p.LaunchConfig == nil || p.LaunchTemplate == nil {
			continue
		}
		key := p.LaunchConfig.Key.String()
		if byKey[key] == nil {
			byKey[key] = &sharedTemplate{config: p.LaunchConfig, of: map[intent.Key]*sharedContent{}}
		}
		byKey[key].users = append(byKey[key].users, p)
	}
	var out []*sharedTemplate
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, byKey[key])
	}
	return out
}

func (s *sharedTemplate) key() string { return s.config.Key.String() }

// pools are the keys of the users.
func (s *sharedTemplate) pools() []string { return keysOf(s.users) }

func keysOf(pools []*intent.Pool) []string {
	var out []string
	for _, p := range pools {
		out = append(out, p.Key.String())
	}
	return out
}

// stand is a pool that stands for the AWSLaunchConfig: its template is that of
// the users, which want the same, and what is to be said of it is said of the
// object that declares it.
func (s *sharedTemplate) stand(users []*intent.Pool) *intent.Pool {
	p := *users[0]
	p.Key = intent.Key{Namespace: step.OwnerOfConfig + s.config.Key.Namespace, Name: s.config.Key.Name}
	p.Infrastructure, p.Options = s.config.Source, s.config.Options
	p.KeepVersions, p.FollowImages, p.PruneDisabled = s.config.KeepVersions, s.config.FollowImages, s.config.PruneDisabled
	t := *p.LaunchTemplate
	t.Tags, p.LaunchTemplate, p.Adopt = s.tags, &t, s.adopt
	return &p
}

// look is what tells most launch templates apart at once, so that only those
// which may be equal are compared.
type look struct {
	userData intent.UserData
	image    intent.Lookup
	data     string
	tags     int
}

// split puts the users that want the same together. Those that cannot be planned
// are in none.
func (s *sharedTemplate) split() {
	alike := map[look][]*sharedContent{}
	for _, u := range s.users {
		if len(u.Blocked) > 0 {
			continue
		}
		t := u.LaunchTemplate
		l := look{t.UserData, t.Image, string(content.BodyJSON(&t.Data)), len(t.Tags)}
		i := slices.IndexFunc(alike[l], func(x *sharedContent) bool { return reflect.DeepEqual(x.users[0].LaunchTemplate, t) })
		if i < 0 {
			x := &sharedContent{}
			i, alike[l], s.contents = len(alike[l]), append(alike[l], x), append(s.contents, x)
		}
		x := alike[l][i]
		x.users, s.of[u.Key] = append(x.users, u), x
	}
}

// join puts together what the users say of the template itself.
func (s *sharedTemplate) join() {
	s.tags = maps.Clone(s.users[0].LaunchTemplate.Tags)
	for _, u := range s.users {
		maps.DeleteFunc(s.tags, func(k, v string) bool { return u.LaunchTemplate.Tags[k] != v })
		s.adopt = s.adopt || u.Adopt
	}
}

// launchConfig plans a template that pools share, before the pools.
func (c templates) launchConfig(s *sharedTemplate) result {
	s.split()
	s.join()
	switch {
	case len(s.contents) == 0 || len(c.in.Fleet.Contested[Claim{Resource: step.LaunchTemplate, Name: s.users[0].LaunchTemplate.Name}]) > 0:
		return c.result // each pool says so
	case !slices.ContainsFunc(s.users, func(p *intent.Pool) bool { return !c.in.Policy.Adoption.skips(p) }):
		return c.result
	case c.in.beingMade(s.users[0]) != "":
		return c.result // each pool waits for the cluster
	}
	c.take(s.answer(c))
	all := c.fork()
	all.hold = c.in.holdOfAll(s.users)
	all.planShared(s, s.stand(s.contents[0].users))
	if all.blocked {
		s.problem = firstError(all.diags)
		all.steps = all.conflicts
	} else {
		all.awaitPins(s, all.steps)
		all.steps = all.adopted(all.steps)
	}
	s.belong(s.users, all.hold, all.steps, all.diags)
	c.take(all.result)
	return c.result
}

// answer has the lookups of what is wanted answered. Where one has no answer, the
// pools wait that need it, and not the others.
func (s *sharedTemplate) answer(c templates) (r result) {
	for _, x := range s.contents {
		part := c.fork()
		part.said = r.diags
		want, ok := part.template(s.stand(x.users))
		if ok {
			delete(want.tags, observed.TagPool)
			want.tags[observed.TagLaunchConfig] = s.key()
			x.want = want
		} else {
			x.problem = firstError(part.diags)
		}
		s.belong(x.users, "", nil, part.diags)
		for _, d := range part.diags { // what all of them wait for is said once
			if !slices.ContainsFunc(r.diags, func(o diag.Diagnostic) bool { return reflect.DeepEqual(o, d) }) {
				r.diags = append(r.diags, d)
			}
		}
	}
	return r
}

// holdOfAll is the hold of what pools share: it moves while any of them does.
func (in Input) holdOfAll(pools []*intent.Pool) step.Hold {
	for _, p := range pools {
		if in.holdOf(p) == "" {
			return ""
		}
	}
	return in.holdOf(pools[0])
}

// refsOf are the template versions that a pool has in AWS.
func (in Input) refsOf(p *intent.Pool) []observed.TemplateRef {
	if p.Nodegroup != nil {
		var refs []observed.TemplateRef
		for _, n := range in.nodegroupsOf(p) {
			refs = append(refs, n.Template)
		}
		return refs
	}
	return in.inUse(in.State.Groups[p.Group.Name])
}

// belong makes steps and diagnostics those of an AWSLaunchConfig: under its name,
// for the users given, with the fields of the object that declares it.
func (s *sharedTemplate) belong(users []*intent.Pool, hold step.Hold, steps []step.Step, diags []diag.Diagnostic) {
	for i := range steps {
		st := &steps[i]
		if st.LaunchConfig != "" {
			continue // that of a version, for the pools that want it
		}
		st.Pool, st.LaunchConfig, st.Pools, st.Wanted = "", s.key(), keysOf(users), users[0]
		if st.Held == "" {
			st.Held = hold
		}
		for j := range st.Changes {
			ch := &st.Changes[j]
			if at, ok := s.config.Field(ch.Path); ok && ch.Object == s.config.Source {
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
		if at, ok := s.config.Field(p); ok {
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

// codeConfigNotReady is the diagnostic of a pool whose shared template is not
// there and cannot be made.
const codeConfigNotReady = "launch-config-not-ready"

// contentOf is what a pool wants of the template that it shares.
func (c templates) contentOf(pool *intent.Pool) *sharedContent {
	return c.shared[pool.LaunchConfig.Key.String()].of[pool.Key]
}

// templateOf is the pool's template with its lookups answered: its own, or the
// one that it shares.
func (c templates) templateOf(pool *intent.Pool) (*wantTemplate, bool) {
	if pool.LaunchConfig == nil {
		return c.template(pool)
	}
	s, x := c.shared[pool.LaunchConfig.Key.String()], c.contentOf(pool)
	problem := cmp.Or(s.problem, x.problem)
	if problem != "" {
		c.blockf(pool, intent.Path{"spec", "launchConfigRef"}, codeConfigNotReady,
			"it waits for the AWSLaunchConfig "+s.key()+", whose launch template cannot be brought to what Git says: "+problem, "")
	}
	return x.want, x.want != nil && problem == ""
}

// common is the version that all pools run and want; ok is false where they differ.
// settled are the pools that run what they want, and whether that changes nothing but
// who makes versions.
func (s *sharedTemplate) common(settled map[intent.Key]bool) (common wantedVersion, ok bool) {
	for _, u := range s.users {
		handover, runs := settled[u.Key]
		if !runs {
			return wantedVersion{}, false
		}
		w := s.of[u.Key].version
		if common.number != 0 && common.number != w.number {
			return wantedVersion{}, false
		}
		w.handover, w.foreign = handover || common.handover, w.foreign || common.foreign
		common = w
	}
	return common, true
}
