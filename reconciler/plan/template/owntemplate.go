package template

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// foreignVersion returns the version of a launch template that the pool brings along. weir never
// plans changes of such a template: it belongs to somebody else, regardless of its tags. inUse
// lists the versions that the group or nodegroup has.
func (c Planner) foreignVersion(pool *intent.Pool, inUse []observed.TemplateRef) (w Version, ok bool) {
	f := pool.ForeignTemplate
	a, ok := c.Answer(pool, f.Lookup)
	if !ok {
		return w, false
	}
	t := a.Template
	if pool.Group != nil {
		foreign{c.Work, pool}.usableByGroup(f, t)
	} else {
		foreign{c.Work, pool}.usableByNodegroup(t)
		foreign{c.Work, pool}.launchable(f, t)
	}
	w = Version{
		Ref: observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(t.Version, 10)}, Number: t.Version, Found: true, Foreign: true, HasImage: t.Image != nil, Image: t.Data.ImageID,
		Template: observed.Template{ID: t.ID, Name: t.Name, LatestVersion: t.Latest, DefaultVersion: t.Default},
	}
	if len(inUse) > 0 {
		foreign{c.Work, pool}.noteMoved(f, t, inUse[0])
	}
	return w, !c.Blocked
}

// WithForeignOverrides returns the pool with a launch template version in each override that has a
// foreign template, which a pool may bring along for the instance types of one architecture. ok is
// false if a template cannot be used, which blocks the pool.
func (c Planner) WithForeignOverrides(pool *intent.Pool) (out *intent.Pool, ok bool) {
	if len(pool.ForeignOverrides) == 0 {
		return pool, true
	}
	p, g, m := *pool, *pool.Group, *pool.Group.MixedInstancesPolicy
	m.Overrides = slices.Clone(m.Overrides)
	for i := range pool.ForeignOverrides {
		f := &pool.ForeignOverrides[i]
		a, answered := c.Answer(pool, f.Lookup)
		if !answered {
			continue
		}
		t := a.Template
		foreign{c.Work, pool}.usableByGroup(f, t)
		has := overrideTemplate(*c.In, g.Name, intent.SplitList(f.Lookup.InstanceType))
		foreign{c.Work, pool}.noteMoved(f, t, has)
		for j := range m.Overrides {
			if slices.Contains(intent.SplitList(f.Lookup.InstanceType), m.Overrides[j].InstanceType) {
				m.Overrides[j].LaunchTemplate = &intent.LaunchTemplateSpecification{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(t.Version, 10)}
			}
		}
	}
	g.MixedInstancesPolicy, p.Group = &m, &g
	return &p, !c.Blocked
}

// overrideTemplate returns the launch template that a group has for the first override with one of
// some instance types.
func overrideTemplate(in model.Input, group string, types []string) observed.TemplateRef {
	m := in.State.Groups[group].MixedInstancesPolicy
	if m == nil {
		return observed.TemplateRef{}
	}
	for _, o := range m.Overrides {
		if t := o.LaunchTemplate; t != nil && slices.Contains(types, o.InstanceType) {
			return observed.TemplateRef{ID: t.ID, Name: t.Name, Version: t.Version}
		}
	}
	return observed.TemplateRef{}
}

// foreign checks the launch template that a pool brings along.
type foreign struct {
	work *model.Work
	pool *intent.Pool
}

// noteMoved reports that an alias now resolves to a version other than the pool's. This is why a
// rollout is due although nothing changed in Git.
func (o foreign) noteMoved(f *intent.ForeignTemplate, t *observed.ForeignTemplate, has observed.TemplateRef) {
	alias := f.Lookup.Version
	if alias != intent.LatestVersion && alias != intent.DefaultVersion {
		return
	}
	n := model.VersionOf(observed.Template{ID: t.ID, Name: t.Name, LatestVersion: t.Latest, DefaultVersion: t.Default}, has)
	if n == 0 || n == t.Version {
		return
	}
	is := alias + " of the launch template " + t.Name + " is version " + strconv.FormatInt(t.Version, 10) + " now"
	o.work.Note(diag.Info, o.pool, f.Field(), "template-moved", is+", and the pool has version "+strconv.FormatInt(n, 10), "")
	if o.work.Pool.Moved != "" {
		is = o.work.Pool.Moved + ", " + is
	}
	o.work.Pool.Moved = is
}

// notUsable blocks a pool whose foreign template has contents that the pool cannot use.
func (o foreign) notUsable(t *observed.ForeignTemplate, path intent.Path, why, detail string) {
	if path == nil {
		path = o.pool.ForeignTemplate.NameField
	}
	o.work.Blockf(o.pool, path, "template-not-usable", "version "+strconv.FormatInt(t.Version, 10)+" of the launch template "+t.Name+" cannot be used: "+why, detail)
}

// usableByGroup applies Auto Scaling's rules for a launch template: CreateAutoScalingGroup and
// LaunchTemplateSpecification in its API reference.
func (o foreign) usableByGroup(f *intent.ForeignTemplate, t *observed.ForeignTemplate) {
	policy := o.pool.Group.MixedInstancesPolicy
	o.launchable(f, t)
	if t.Image == nil {
		o.notUsable(t, f.NameField, "it names no image, which an Auto Scaling group needs", "")
	}
	if t.Data.InstanceType == "" && !t.Requirements && (policy == nil || len(policy.Overrides) == 0) {
		o.notUsable(t, f.NameField, "it names no instance type, and neither does the pool", "write spec.mixedInstancesPolicy.overrides in the pool, or make a version that names one")
	}
	if back := o.pool.Group.Refresh.AutoRollback; back != nil && *back && strings.HasPrefix(t.Data.ImageID, "resolve:ssm:") {
		o.notUsable(t, f.NameField, "an SSM parameter names its image, but a refresh with automatic rollback needs the image's id", "remove refreshPreferences.autoRollback from the PoolOptions, or make a version that names the image itself")
	}
	if m := t.Data.InstanceMarketOptions; m != nil && m.MarketType == "spot" && policy != nil {
		o.notUsable(t, f.NameField, "it asks for spot instances, which Auto Scaling does not accept in a launch template together with a mixed instances policy", "make a version without instance market options")
	}
}

// launchable applies EC2's rules at launch.
func (o foreign) launchable(f *intent.ForeignTemplate, t *observed.ForeignTemplate) {
	if keys := t.Data.HiddenTags(); len(keys) > 0 {
		o.notUsable(t, f.NameField, "instance metadata should show the tags of its machines, but cannot show "+strings.Join(keys, ", ")+": EC2 refuses each launch", "make a version with InstanceMetadataTags disabled, or without these tags")
	}
}

// usableByNodegroup applies EKS's rules for a launch template and for the nodegroup's own fields:
// "Customize managed nodes with launch templates" in its user guide, and CreateNodegroup in its API
// reference.
func (o foreign) usableByNodegroup(t *observed.ForeignTemplate) {
	n, d := o.pool.Nodegroup, &t.Data
	for _, member := range []struct {
		there bool
		what  string
	}{
		{d.IamInstanceProfile != nil, "an instance profile, but the nodegroup's role decides"},
		{d.InstanceMarketOptions != nil && d.InstanceMarketOptions.MarketType == "spot", "spot instances, but the nodegroup's capacity type decides"},
		{d.HibernationOptions != nil, "hibernation"},
		{d.InstanceInitiatedShutdownBehavior != "", "a shutdown behavior"},
		{slices.ContainsFunc(d.NetworkInterfaces, func(i intent.NetworkInterface) bool { return i.SubnetID != "" }), "a subnet, but the nodegroup's subnets decide"},
	} {
		if member.there {
			o.notUsable(t, nil, "EKS takes no launch template that has "+member.what, "")
		}
	}
	if d.InstanceType != "" && (n.InstanceType != "" || len(n.InstanceTypes) > 0) {
		o.notUsable(t, intent.Path{"spec", "instanceType"}, "it names the instance type "+d.InstanceType+", and EKS accepts no other instance types with it", "remove spec.instanceType, or make a version without one")
	}
	switch image := t.Image != nil; {
	case image && n.AMIType != "" && n.AMIType != CustomImage:
		o.notUsable(t, intent.Path{"spec", "amiType"}, "it names an image, and EKS accepts no amiType with an image", "remove spec.amiType, or make a version without an image")
	case image && n.ReleaseVersion != "":
		o.notUsable(t, intent.Path{"spec", "amiVersion"}, "it names an image, and EKS accepts no release version with an image", "remove spec.amiVersion, or make a version without an image")
	case !image && n.AMIType == CustomImage:
		o.notUsable(t, intent.Path{"spec", "amiType"}, "it names no image, and spec.amiType is CUSTOM", "make a version that names an image, or write another amiType")
	}
}

// CustomImage is EKS's amiType of a nodegroup whose launch template has the image.
const CustomImage = "CUSTOM"

// VersionChanges returns the changes of a pool from one launch template version to another. If the
// pool brings its template, they come from a manifest field.
func VersionChanges(pool *intent.Pool, have observed.TemplateRef, want Version) []step.Change {
	version := step.Change{Field: "launchTemplate.version", From: model.OrNil(have.Version), To: want.Version()}
	name := step.Change{Field: "launchTemplate.name", From: model.OrNil(have.Name), To: cmp.Or(want.Template.Name, want.Ref.Name), Object: pool.Infrastructure}
	switch f := pool.ForeignTemplate; {
	case f != nil:
		name.Path = f.NameField
		version.Object, version.Path = pool.Infrastructure, f.Field()
	case pool.LaunchConfig != nil:
		name.Path = intent.Path{"spec", "launchConfigRef"}
	case have.Name == "": // the template's name derives from the pool's
		return []step.Change{version}
	}
	if name.To == have.Name {
		return []step.Change{version}
	}
	return []step.Change{name, version}
}
