package plan

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// sharedTemplate is the launch template of an AWSLaunchConfig, planned once for
// all pools that use it.
type sharedTemplate struct {
	config *intent.LaunchConfig
	// users are the pools of the target that name it, in order.
	users []*intent.Pool
	want  *wantTemplate
	// version is the wanted one; known is false where it cannot be said yet.
	version wantedVersion
	known   bool
	// problem says why the pools cannot be planned.
	problem string
	// settled are the pools that run the wanted version and nothing else.
	settled map[string]bool
	// hold keeps the version from being made, and the pools' steps that need it.
	hold       Hold
	holdReason string
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
			byKey[key] = &sharedTemplate{config: p.LaunchConfig, settled: map[string]bool{}}
		}
		byKey[key].users = append(byKey[key].users, p)
	}
	var out []*sharedTemplate
	for _, key := range sortedKeys(byKey) {
		out = append(out, byKey[key])
	}
	return out
}

func (s *sharedTemplate) key() string { return s.config.Key.String() }

// pools are the keys of the users.
func (s *sharedTemplate) pools() []string {
	var out []string
	for _, p := range s.users {
		out = append(out, p.Key.String())
	}
	return out
}

// stand is a pool that stands for the AWSLaunchConfig: its template is that of
// any user, and what is to be said of it is said of the object that declares it.
// ok is false where no user's template is complete.
func (s *sharedTemplate) stand() (pool *intent.Pool, ok bool) {
	i := slices.IndexFunc(s.users, func(p *intent.Pool) bool { return len(p.Blocked) == 0 })
	if i < 0 {
		return nil, false
	}
	p := *s.users[i]
	p.Key = intent.Key{Namespace: ownerOfConfig + s.config.Key.Namespace, Name: s.config.Key.Name}
	p.Infrastructure, p.LaunchConfig = s.config.Source, nil
	p.KeepVersions, p.FollowImages, p.PruneDisabled = s.config.KeepVersions, s.config.FollowImages, s.config.PruneDisabled
	return &p, true
}

// launchConfigs plans the templates that pools share, before the pools: one
// version serves all of them.
func (c *computation) launchConfigs() {
	for _, s := range launchConfigsOf(c.in.Set) {
		if c.shared == nil {
			c.shared = map[string]*sharedTemplate{}
		}
		c.shared[s.key()] = s
		pool, ok := s.stand()
		if !ok || len(c.in.Fleet.Contested[Claim{Resource: LaunchTemplate, Name: s.users[0].LaunchTemplate.Name}]) > 0 {
			continue // each pool says so
		}
		if !slices.ContainsFunc(s.users, func(p *intent.Pool) bool { return !c.in.Policy.Adoption.skips(p) }) {
			continue
		}
		steps, diags := len(c.steps), len(c.diags)
		c.hold, c.blocked, c.adopts = c.holdOfAll(s), false, false
		var inUse []TemplateRef
		for _, u := range s.users {
			for _, ref := range c.refsOf(u) {
				if ref != (TemplateRef{}) && !slices.Contains(inUse, ref) {
					inUse = append(inUse, ref)
				}
			}
		}
		if want, ok := c.template(pool); ok {
			delete(want.tags, TagPool)
			want.tags[TagLaunchConfig] = s.key()
			s.want = want
			s.version, s.known = c.planTemplate(pool, want, inUse)
		}
		if c.blocked {
			s.known = false
			s.problem = firstError(c.diags[diags:])
			c.steps = slices.DeleteFunc(c.steps, func(st Step) bool { return st.Pool == pool.Key.String() && st.Held != HeldConflict })
		} else {
			c.awaitPins(s, c.steps[steps:])
			c.adopted(steps)
		}
		c.belong(s, c.steps[steps:], c.diags[diags:])
	}
}

// holdOfAll is the hold of a template that is shared: it moves while any pool does.
func (c *computation) holdOfAll(s *sharedTemplate) Hold {
	for _, p := range s.users {
		if c.holdOf(p) == "" {
			return ""
		}
	}
	return c.holdOf(s.users[0])
}

// refsOf are the template versions that a pool has in AWS.
func (c *computation) refsOf(p *intent.Pool) []TemplateRef {
	if p.Nodegroup != nil {
		var refs []TemplateRef
		for _, n := range c.in.nodegroupsOf(p) {
			refs = append(refs, n.Template)
		}
		return refs
	}
	return c.inUse(c.in.State.Groups[p.Group.Name])
}

// belong makes steps and diagnostics those of an AWSLaunchConfig: under its name,
// with the fields of the object that declares it.
func (c *computation) belong(s *sharedTemplate, steps []Step, diags []diag.Diagnostic) {
	for i := range steps {
		st := &steps[i]
		st.Pool, st.LaunchConfig, st.Pools = "", s.key(), s.pools()
		if st.Held == "" {
			st.Held = c.hold
		}
		for j := range st.Changes {
			ch := &st.Changes[j]
			if at, ok := s.config.Field(ch.Path); ok && ch.Object == s.config.Source {
				ch.Path, ch.Field = at, at[1:].String()
			} else if len(ch.Path) > 1 && ch.Path[1] == "additionalTags" {
				ch.Object = s.users[0].Infrastructure
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

// templateOf is the pool's template with its lookups answered: its own, or the
// one that it shares.
func (c *computation) templateOf(pool *intent.Pool) (*wantTemplate, bool) {
	if pool.LaunchConfig == nil {
		return c.template(pool)
	}
	s := c.shared[pool.LaunchConfig.Key.String()]
	if s.problem != "" {
		c.blockf(pool, intent.Path{"spec", "launchConfigRef"}, codeConfigNotReady,
			"it waits for the AWSLaunchConfig "+s.key()+", whose launch template cannot be brought to what Git says: "+s.problem, "")
	}
	return s.want, s.want != nil && s.problem == ""
}

// settle notes that a pool runs the wanted version of the template that it shares.
func (c *computation) settle(pool *intent.Pool) {
	c.shared[pool.LaunchConfig.Key.String()].settled[pool.Key.String()] = true
}

// launchConfigDefaults moves the default versions of shared templates: each once
// all of its pools run the wanted version. While the rollout of one has failed or
// is held, the default stays where it was, which every pool has run.
func (c *computation) launchConfigDefaults() {
	for _, key := range sortedKeys(c.shared) {
		s := c.shared[key]
		pool, ok := s.stand()
		if !ok || !s.known || len(s.settled) < len(s.users) || c.in.Policy.Adoption.Asked {
			continue
		}
		before := len(c.steps)
		c.hold = c.holdOfAll(s)
		c.planDefault(pool, s.version)
		c.belong(s, c.steps[before:], nil)
	}
}

// ownerOfConfig begins what Step.Owner says of the steps of an AWSLaunchConfig.
const ownerOfConfig = "launch-config "

// Owner names what the step belongs to: the pool, or the AWSLaunchConfig behind
// the words "launch-config". The steps of one owner run in order.
func (s Step) Owner() string {
	if s.LaunchConfig != "" {
		return ownerOfConfig + s.LaunchConfig
	}
	return s.Pool
}

// OfLaunchConfig reports whether an owner is an AWSLaunchConfig.
func OfLaunchConfig(owner string) bool { return strings.HasPrefix(owner, ownerOfConfig) }

// Unmade reports whether an action needs a template version that has not been
// made: a step before it that was to make it did not run.
func Unmade(a Action) bool {
	unmade := func(r TemplateRef) bool { return r.Name != "" && r.Version == "" }
	switch a := a.(type) {
	case CreateGroup:
		return unmade(a.Group.Template)
	case UpdateGroup:
		return a.Template != nil && unmade(*a.Template)
	case StartRefresh:
		return unmade(a.Template)
	case CreateNodegroup:
		return unmade(a.Nodegroup.Template)
	case UpdateNodegroupVersion:
		return a.Template != nil && unmade(*a.Template)
	}
	return false
}
