package derive

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// poolID identifies a pool object.
type poolID struct{ namespace, kind, name string }

// readPoolOptions maps PoolOptions to their pools. If the pool of a PoolOptions is unknown, no pool of the
// namespace without options is derived. Each of them could be the pool, and would roll without its options.
func (b *Builder) readPoolOptions() {
	b.poolOptions, b.strayOptions = map[poolID]*kinds.Decoded[kinds.PoolOptionsSpec]{}, map[string]bool{}
	for _, namespace := range b.index.UnreadOptions {
		b.strayOptions[namespace] = true
	}
	for _, o := range b.index.PoolOptions.Sorted() {
		ref, at := o.Spec.PoolRef, path("spec", "poolRef")
		id := poolID{o.Key().Namespace, ref.Kind, ref.Name}
		r := o.Reporter(b.faults)
		key := intent.Key{Namespace: id.namespace, Name: id.name}
		var known bool
		switch ref.Kind {
		case string(intent.GroupPool):
			_, known = b.index.Pools[key]
		case string(intent.NodegroupPool):
			_, known = b.index.ManagedPools[key]
		case kinds.KindLaunchConfig:
			_, known = b.index.LaunchConfigs[key]
		case kinds.KindLaunchConfigTemplate:
			_, known = b.index.LaunchConfigTemplates[key]
		}
		switch first, taken := b.poolOptions[id]; {
		case !known:
			b.strayOptions[id.namespace] = true
			if !o.Broken {
				b.dangling(r, at.Join("name"), &kinds.ObjectReference{Kind: ref.Kind, Name: ref.Name}, diag.Error, "reference-not-found", "")
			}
		case taken:
			first.Broken = true
			r.To.Add(kinds.Fault{Code: "duplicate-options", Summary: fmt.Sprintf("%s and %s are both for %s %s", first.Ref(), o.Ref(), ref.Kind, ref.Name),
				Detail: "write the options of a pool in one object", Ref: r.Ref, Path: at.Join("name"),
				Related: []kinds.RelatedField{{Ref: first.Ref(), Path: at.Join("name"), Message: "the other reference"}}})
		default:
			b.poolOptions[id] = o
			relateToPool(b.faults, b.index, o, intent.ObjectRef{APIVersion: poolVersion(b.index, id), Kind: id.kind, Namespace: id.namespace, Name: id.name})
		}
	}
}

// poolVersion returns the apiVersion of an object that PoolOptions may name. The object must exist.
func poolVersion(index *kinds.Index, id poolID) string {
	key := intent.Key{Namespace: id.namespace, Name: id.name}
	switch id.kind {
	case string(intent.GroupPool):
		return index.Pools[key].Ref().APIVersion
	case kinds.KindLaunchConfig:
		return index.LaunchConfigs[key].Ref().APIVersion
	case kinds.KindLaunchConfigTemplate:
		return index.LaunchConfigTemplates[key].Ref().APIVersion
	}
	return index.ManagedPools[key].Ref().APIVersion
}

// sections maps the parts of PoolOptions to the resources that they configure.
var sections = map[string]field.Kind{"launchTemplate": field.Template, "autoScalingGroup": field.Group, "nodegroup": field.Nodegroup}

// relateToPool adds the field of the pool to a fault about a member that must be set there.
func relateToPool(faults *kinds.Faults, index *kinds.Index, o *kinds.Decoded[kinds.PoolOptionsSpec], pool intent.ObjectRef) {
	source, config := poolSource(index, pool), intent.LaunchConfig{Source: pool}
	for i := range faults.List {
		f := &faults.List[i]
		if f.Ref != o.Ref() || f.Code != "unknown-field" || len(f.Path) != len(kinds.OptionsTemplate)+1 {
			continue
		}
		at, ok := field.InPool(sections[f.Path[1]], f.Path[2])
		at = path("spec").Join(at...)
		if field, is := config.Field(at); is && kinds.IsLaunchConfig(pool.Kind) {
			f.Detail = strings.Replace(f.Detail, at.String()+" in the pool", field.String()+" in "+pool.String(), 1)
			at = field
		}
		if ok && source.Has(at...) {
			f.Related = append(f.Related, kinds.RelatedField{Ref: pool, Path: at, Message: "the pool sets it"})
		}
	}
}

func poolSource(index *kinds.Index, pool intent.ObjectRef) kinds.Object {
	key := kinds.KeyOf(pool)
	switch pool.Kind {
	case string(intent.GroupPool):
		return index.Pools[key].Source
	case kinds.KindLaunchConfig:
		return index.LaunchConfigs[key].Source
	case kinds.KindLaunchConfigTemplate:
		return index.LaunchConfigTemplates[key].Source
	}
	return index.ManagedPools[key].Source
}

// applyPoolOptions adds a pool's PoolOptions to the pool, and the PoolOptions of its shared launch template.
func (b *Builder) applyPoolOptions(d *draft) {
	if d.Group == nil && d.Nodegroup == nil {
		return // the missing part was already reported
	}
	options := func(ref intent.ObjectRef) *kinds.Decoded[kinds.PoolOptionsSpec] {
		o, ok := b.poolOptions[poolID{ref.Namespace, ref.Kind, ref.Name}]
		// Faults of the options were already reported. The faults of the pool are reported as well.
		d.broken = d.broken || ok && o.Broken || !ok && b.strayOptions[ref.Namespace]
		return o
	}
	if o := options(d.Infrastructure); o != nil {
		d.Options = o.Ref()
		b.applyTemplateOptions(d, o)
		applyGroupOptions(b.index, d, o)
		applyNodegroupOptions(b.index, d, o)
		applyDrainer(d, o)
		if d.Group != nil {
			d.CheckRetention() // depends also on the drainer's hook
		}
	}
	if d.LaunchConfig == nil || d.LaunchTemplate == nil {
		return
	}
	if o := options(d.LaunchConfig.Source); o != nil {
		d.LaunchConfig.Options, d.AtOptions = o.Ref(), o.Reporter(d.Faults)
		if t := o.Spec.LaunchTemplate; t != nil {
			b.addTemplateOptions(d, t)
		}
	}
}

// applyTemplateOptions adds the options of the pool's launch template.
func (b *Builder) applyTemplateOptions(d *draft, o *kinds.Decoded[kinds.PoolOptionsSpec]) {
	t := o.Spec.LaunchTemplate
	if t == nil || reflect.ValueOf(*t).IsZero() {
		return
	}
	d.AtOptions = o.Reporter(d.Faults)
	if at := path("spec", "launchConfigRef"); poolSource(b.index, d.Infrastructure).Has(at...) {
		detail := "it is the launch template of all pools that name it"
		if d.LaunchConfig != nil {
			detail = "write it in a PoolOptions whose poolRef names " + d.LaunchConfig.Source.String()
		}
		d.OptionsExclude(kinds.OptionsTemplate, at, detail)
		return
	}
	if f := d.ForeignTemplate; f != nil {
		d.OptionsExclude(kinds.OptionsTemplate, f.NameField, "the pool has the launch template that it names; change that one")
		return
	}
	b.addTemplateOptions(d, t)
}

// addTemplateOptions adds options to a launch template, which may be shared.
func (b *Builder) addTemplateOptions(d *draft, t *kinds.TemplateOptions) {
	if d.Kind == intent.NodegroupPool {
		t = optionsForEKS(d, t)
	}
	if d.LaunchTemplate == nil {
		b.templateForOptions(d)
	}
	checkOverlap(b.index, d, t)
	t.AddTo(&d.LaunchTemplate.Data)
	d.coreGroups(t)
}

// coreGroups sets the cluster's security groups on network interfaces of a managed pool that have no groups.
// EKS adds its own groups only to templates without network interfaces, and nodes cannot join with the
// default group of the VPC.
func (d *draft) coreGroups(t *kinds.TemplateOptions) {
	core := intent.Lookup{Kind: intent.CoreSecurityGroups, Cluster: d.ClusterKey}
	bare := slices.ContainsFunc(t.NetworkInterfaces, func(n intent.NetworkInterface) bool { return len(n.Groups) == 0 })
	if lt := d.LaunchTemplate; bare && !slices.Contains(lt.SecurityGroups, core) {
		lt.SecurityGroups = append([]intent.Lookup{core}, lt.SecurityGroups...)
	}
}

// templateForOptions gives a managed pool without awsLaunchTemplate a template that contains only its
// options. EKS decides everything else.
func (b *Builder) templateForOptions(d *draft) {
	s := &b.index.ManagedPools[kinds.KeyOf(d.Infrastructure)].Spec
	controlPlane := cmp.Or(d.cluster.controlPlaneName, d.ClusterKey.Name)
	b.launchTemplate(d, &kinds.LaunchTemplate{}, controlPlane+"-"+d.Infrastructure.Name, additionalTags(d.cluster, s.AdditionalTags), "")
	d.LaunchTemplate.Data.TagSpecifications = nil
	if !slices.ContainsFunc(d.Faults.List, func(f kinds.Fault) bool { return f.Code == "too-many-tags" }) {
		d.CheckTagCount(d.LaunchTemplate.Tags)
	}
	for field, instead := range map[string]string{"diskSize": "rootVolume.size", "remoteAccess": "sshKeyName and additionalSecurityGroups"} {
		if at := path("spec", field); poolSource(b.index, d.Infrastructure).Has(at...) {
			d.OptionsExclude(kinds.OptionsTemplate, at, "write spec.awsLaunchTemplate."+instead+" in the pool: EKS takes spec."+field+" only without a launch template, which the options need")
		}
	}
}

// optionsForEKS refuses options that EKS forbids in the launch template of a nodegroup:
// LaunchTemplateSpecification in its API reference, and "Customize managed nodes with launch templates" in
// its user guide. It removes fields that group pools with the same template may need.
func optionsForEKS(d *draft, t *kinds.TemplateOptions) *kinds.TemplateOptions {
	out := *t
	refuse := func(at intent.Path, detail string) {
		d.AtOptions.Error(at, "not-allowed", fmt.Sprintf("%s is not allowed for a managed pool: EKS refuses a launch template that has it", at), detail)
	}
	withoutEffect := refuse
	if d.LaunchConfig != nil {
		withoutEffect = func(at intent.Path, detail string) {
			d.AtOptions.Info(at, "not-carried", at.String()+" has no effect on managed pools: EKS does not use it from launch templates", detail)
		}
	}
	if t.HibernationOptions != nil {
		withoutEffect(kinds.OptionsTemplate.Join("hibernationOptions"), "use an AWSMachinePool")
		out.HibernationOptions = nil
	}
	if t.InstanceInitiatedShutdownBehavior != "" {
		withoutEffect(kinds.OptionsTemplate.Join("instanceInitiatedShutdownBehavior"), "EKS ends instances itself")
		out.InstanceInitiatedShutdownBehavior = ""
	}
	for i := range t.NetworkInterfaces {
		if t.NetworkInterfaces[i].SubnetID != "" {
			refuse(kinds.OptionsTemplate.Join("networkInterfaces", intent.Index(i), "subnetId"), "write spec.subnetIDs in the pool")
		}
	}
	return &out
}

// checkOverlap reports options that repeat or exclude fields of the pool, or fields of the object that
// declares its shared launch template.
func checkOverlap(index *kinds.Index, d *draft, t *kinds.TemplateOptions) {
	lt := path("spec", "awsLaunchTemplate")
	has := func(field string) bool {
		ref, at := d.Declares(lt.Join(field))
		return poolSource(index, ref).Has(at...)
	}
	for i := range t.NetworkInterfaces {
		if len(t.NetworkInterfaces[i].Groups) > 0 && has("additionalSecurityGroups") {
			d.OptionsExclude(kinds.OptionsTemplate.Join("networkInterfaces", intent.Index(i), "groups"), lt.Join("additionalSecurityGroups"),
				"write all groups of the interfaces here, or leave groups out: the interfaces then have the pool's")
		}
	}
	if t.ReservationGroup() != "" && has("capacityReservationId") {
		d.OptionsExclude(kinds.OptionsTemplate.Join("capacityReservationSpecification", "capacityReservationTarget", "capacityReservationResourceGroupArn"), lt.Join("capacityReservationId"), "instances are launched into only one of the two")
	}
	if e := d.LaunchTemplate.Data.EnclaveOptions; t.HibernationOptions != nil && intent.Value(t.HibernationOptions.Configured) && e != nil && intent.Value(e.Enabled) {
		d.OptionsExclude(kinds.OptionsTemplate.Join("hibernationOptions", "configured"), lt.Join("enclaveOptions", "enabled"), "EC2 supports only one of the two")
	}
}
