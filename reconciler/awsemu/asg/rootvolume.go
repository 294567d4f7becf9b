package asg

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// The strategies of an instance refresh.
const (
	rolling           = "Rolling"
	replaceRootVolume = "ReplaceRootVolume"
)

// memberReplacing is the state of a member whose root volume is being replaced. Lifecycle hooks do
// not run for it.
const memberReplacing = "ReplacingRootVolume"

// checkRootVolumes refuses the cases in "Replace root volumes during instance refresh" in the user guide,
// and changes of anything except the image, according to the CDK reference.
func (r *Region) checkRootVolumes(g *Group, desired *GroupConfig) *wire.Error {
	refuse := func(why string) *wire.Error {
		return invalid("An instance refresh with the ReplaceRootVolume strategy can't be started: %s", why)
	}
	named := func(c *GroupConfig) bool {
		return c.Mixed != nil && len(c.Mixed.Overrides) > 0 && !slices.ContainsFunc(c.Mixed.Overrides, func(o Override) bool { return o.ImageID == "" })
	}
	switch {
	case g.Config.Mixed == nil:
		return refuse("the Auto Scaling group must use a mixed instances policy.")
	case desired == nil || desired.Mixed == nil:
		return refuse("the desired configuration must have a mixed instances policy.")
	case !named(&g.Config) || !named(desired):
		return refuse("all overrides of the mixed instances policy must specify an ImageId.")
	case !g.Config.pinned(r) || !desired.pinned(r):
		return refuse("a launch template version of $Latest or $Default is in use.")
	case g.Warm != nil:
		return refuse("the Auto Scaling group has a warm pool.")
	}
	matches := MatcherOf(r.ec2, g.Config)
	for _, m := range g.Members {
		switch {
		case !m.Active():
		case !slices.ContainsFunc(desired.Mixed.Overrides, func(o Override) bool { return o.InstanceType == m.Type }):
			return refuse("the type of the instance " + m.ID + " is not present in the mixed instances policy.")
		case !matches(m):
			return refuse("the instance " + m.ID + " does not match the group's launch template configuration.")
		}
	}
	before, failed := r.choices(g.Config)
	after, err := r.choices(*desired)
	if failed != nil || err != nil {
		return cmp.Or(failed, err)
	}
	for i := range after {
		a, b := after[i].version.Data.MergedWith(nil), before[min(i, len(before)-1)].version.Data.MergedWith(nil)
		delete(a, "ImageId")
		delete(b, "ImageId")
		if len(before) != len(after) || !reflect.DeepEqual(a, b) {
			return refuse("only the ImageId may change.")
		}
	}
	return nil
}

// oldVolume returns a function that reports whether a member still has its earlier root volume or, during a
// rollback, one of the refresh.
func (r *replacement) oldVolume() func(*Member) bool {
	if r.f.Status == refreshRollingBack {
		match := MatcherOf(r.ec2, r.g.Config)
		return func(m *Member) bool { return !match(m) }
	}
	match := MatcherOf(r.ec2, *r.f.Desired)
	return func(m *Member) bool {
		return m.Volume != r.f.ID && (!r.f.Prefs.SkipMatching || !match(m)) && (!m.Protected || r.f.Prefs.Protected != "Ignore")
	}
}

// detach takes the next members out of service to replace their root volumes: as many as may be missing, at
// least one.
func (r *replacement) detach(open []*Member) time.Duration {
	n := int64(len(Keep(r.g.Members, (*Member).Active)))
	size := max(n-(n*r.f.Prefs.MinHealthy+99)/100, 1)
	if r.f.Status == refreshInProgress && r.f.Checkpoint < len(r.f.Prefs.Checkpoints) {
		size = min(size, max(r.missing(), 1))
	}
	for _, m := range open[:min(size, int64(len(open)))] {
		m.Lifecycle = memberReplacing
		r.f.Batch = append(r.f.Batch, m.ID)
	}
	r.f.Progress = r.Now()
	return r.Timings().RefreshBatch
}

// exchange gives members their new root volumes and puts them back into service. If no image exists for a
// member, it is terminated and replaced.
func (r *replacement) exchange() {
	if r.f.Strategy != replaceRootVolume {
		return
	}
	config := *r.f.Desired
	if r.f.Status == refreshRollingBack {
		config = r.g.Config
	}
	choices, err := r.choices(config)
	for _, id := range r.f.Batch {
		m, in := r.g.Member(id), r.ec2.Instances.Get(id)
		if m == nil || in == nil || m.Lifecycle != memberReplacing {
			continue
		}
		i := slices.IndexFunc(choices, func(ch Choice) bool { return ch.instanceType == "" || ch.instanceType == m.Type })
		if err != nil || i < 0 {
			r.EndMember(r.g, m, refreshCause)
			continue
		}
		ch := &choices[i]
		image, missing := r.ec2.ResolveImage(cmp.Or(ch.imageID, ch.version.Data.Text("ImageId")))
		if missing != nil || !r.ec2.Images.Has(image) {
			r.EndMember(r.g, m, refreshCause)
			continue
		}
		in.ImageID, m.ImageID, m.OwnImage, m.Template, m.Volume = image, image, ch.imageID != "", ch.spec, r.f.ID
		m.Lifecycle, m.Served = memberInService, r.Now()
	}
}
