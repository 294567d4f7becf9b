package group

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// replaceRootVolume is the strategy of a refresh in which machines stay and get new root volumes of
// the wanted image. It launches nothing, so it needs no additional capacity.
const replaceRootVolume = "ReplaceRootVolume"

// withImages returns the pool with the launch template's image in overrides that name no image,
// because AWS replaces root volumes only by the images of overrides. It returns pools with another
// strategy unchanged.
func withImages(pool *intent.Pool, image string) *intent.Pool {
	m := pool.Group.MixedInstancesPolicy
	if pool.Group.Refresh.Strategy != replaceRootVolume || m == nil || image == "" {
		return pool
	}
	p, g, policy := *pool, *pool.Group, *m
	policy.Overrides = slices.Clone(policy.Overrides)
	for i := range policy.Overrides {
		if o := &policy.Overrides[i]; o.ImageID == "" && o.LaunchTemplate == nil {
			o.ImageID = image
		}
	}
	g.MixedInstancesPolicy, p.Group = &policy, &g
	return &p
}

// strategy returns the strategy of a refresh for a pool that wants new root volumes, and a note for
// the plan.
func (l launching) strategy(g *governed) (name, note string) {
	if why := l.whyNoRootVolumeReplacement(g); why != "" {
		return usualStrategy, "; new machines are launched, as " + why
	}
	return replaceRootVolume, "; they get new root volumes in place"
}

// whyNoRootVolumeReplacement explains why AWS would not replace root volumes for a change, "" if it would: only
// the image may change, and all machines must run the version to which the group is set.
// Assumed of AWS: root-volume-versions.
func (l launching) whyNoRootVolumeReplacement(g *governed) string {
	before, after := l.have.MixedInstancesPolicy, l.pool.Group.MixedInstancesPolicy
	switch {
	case g.Governed && g.Share() < 100:
		return "the rollout goes in shares"
	case l.pool.ForeignTemplate != nil:
		return "the pool brings its launch template along"
	case before == nil || l.have.UnknownPolicy || slices.ContainsFunc(before.Overrides, func(o intent.Override) bool { return o.ImageID == "" }):
		return "the group's overrides name no images so far"
	case !withoutImages(before).Same(withoutImages(after)):
		return "more of the mixed instances policy changes than its images"
	case l.have.Template.Alias():
		return "the group follows an alias of its launch template"
	case l.have.Options.WarmPool != nil:
		return "the group has a warm pool"
	}
	for _, i := range l.have.Instances {
		if i.Counts() && (!sameRef(i.Template, l.have.Template) || !slices.ContainsFunc(before.Overrides, func(o intent.Override) bool {
			return o.InstanceType == i.Type && (o.ImageID == i.ImageID || i.ImageID == "")
		})) {
			return "not all machines run what the group is set to"
		}
	}
	number := model.VersionOf(l.version.Template, l.have.Template)
	v, read := l.planner.Version(l.version.Template, number)
	if number == 0 || !read || !l.version.ImageAlone(v) {
		return "the change is not of the image alone"
	}
	return ""
}

func withoutImages(m *intent.MixedInstances) *intent.MixedInstances {
	p := *m
	p.Overrides = slices.Clone(m.Overrides)
	for i := range p.Overrides {
		p.Overrides[i].ImageID = ""
	}
	return &p
}
