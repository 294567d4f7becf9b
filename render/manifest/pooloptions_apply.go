package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// poolID names a pool object.
type poolID struct{ namespace, kind, name string }

var optionsTemplate = path("spec", "launchTemplate")

// readPoolOptions finds the pools that PoolOptions are for. Where it cannot tell,
// no pool of the namespace that has none is derived: it might be the one, and
// would roll without its options.
func (b *builder) readPoolOptions() {
	b.poolOptions, b.strayOptions = map[poolID]*object[PoolOptionsSpec]{}, map[string]bool{}
	for _, namespace := range b.index.unreadOptions {
		b.strayOptions[namespace] = true
	}
	for _, o := range b.index.poolOptions.sorted() {
		ref, at := o.Spec.PoolRef, path("spec", "poolRef")
		id := poolID{o.key().Namespace, ref.Kind, ref.Name}
		r := o.reporter(b.faults)
		key := intent.Key{Namespace: id.namespace, Name: id.name}
		var known bool
		switch intent.PoolKind(ref.Kind) {
		case intent.GroupPool:
			_, known = b.index.pools[key]
		case intent.NodegroupPool:
			_, known = b.index.managedPools[key]
		}
		switch first, taken := b.poolOptions[id]; {
		case !known:
			b.strayOptions[id.namespace] = true
			if !o.broken {
				b.dangling(r, at.Join("name"), &ObjectReference{Kind: ref.Kind, Name: ref.Name}, diag.Error, "reference-not-found", "")
			}
		case taken:
			first.broken = true
			r.to.add(Fault{Code: "duplicate-options", Summary: fmt.Sprintf("%s and %s are both for %s %s", first.ref(), o.ref(), ref.Kind, ref.Name),
				Detail: "write the options of a pool in one object", Ref: r.ref, Path: at.Join("name"),
				Related: []RelatedField{{Ref: first.ref(), Path: at.Join("name"), Message: "the other reference"}}})
		default:
			b.poolOptions[id] = o
			b.relateToPool(o, intent.ObjectRef{APIVersion: b.poolVersion(id), Kind: id.kind, Namespace: id.namespace, Name: id.name})
		}
	}
}

// poolVersion is the apiVersion of a pool object that is known to be there.
func (b *builder) poolVersion(id poolID) string {
	key := intent.Key{Namespace: id.namespace, Name: id.name}
	if o, ok := b.index.pools[key]; ok && id.kind == string(intent.GroupPool) {
		return o.ref().APIVersion
	}
	return b.index.managedPools[key].ref().APIVersion
}

// relateToPool shows, beside a member that belongs into the pool, where the pool
// sets it.
func (b *builder) relateToPool(o *object[PoolOptionsSpec], pool intent.ObjectRef) {
	source := b.poolSource(pool)
	for i := range b.faults.list {
		f := &b.faults.list[i]
		if f.Ref != o.ref() || f.Code != "unknown-field" || len(f.Path) != len(optionsTemplate)+1 {
			continue
		}
		var at intent.Path
		var ok bool
		switch name := f.Path[len(f.Path)-1]; {
		case overlap(f.Path, optionsTemplate):
			at, ok = ofPool()[name]
		case overlap(f.Path, optionsGroup):
			at, ok = groupOfPool()[name]
		}
		if at = path("spec").Join(at...); ok && source.has(at...) {
			f.Related = append(f.Related, RelatedField{Ref: pool, Path: at, Message: "the pool sets it"})
		}
	}
}

func (b *builder) poolSource(pool intent.ObjectRef) Object {
	if o, ok := b.index.pools[keyOf(pool)]; ok && pool.Kind == string(intent.GroupPool) {
		return o.source
	}
	return b.index.managedPools[keyOf(pool)].source
}

// applyPoolOptions adds to a pool what its PoolOptions says.
func (b *builder) applyPoolOptions(d *draft) {
	if d.Group == nil && d.Nodegroup == nil {
		return // what is missing was reported
	}
	o, ok := b.poolOptions[poolID{d.Infrastructure.Namespace, d.Infrastructure.Kind, d.Infrastructure.Name}]
	if !ok {
		d.broken = d.broken || b.strayOptions[d.Infrastructure.Namespace]
		return
	}
	d.broken = d.broken || o.broken // and what else is wrong is said all the same
	d.Options = o.ref()
	b.applyTemplateOptions(d, o)
	b.applyGroupOptions(d, o)
	b.applyNodegroupOptions(d, o)
}

// applyTemplateOptions adds what the options say of the pool's launch template.
func (b *builder) applyTemplateOptions(d *draft, o *object[PoolOptionsSpec]) {
	t := o.Spec.LaunchTemplate
	if t == nil || reflect.ValueOf(*t).IsZero() {
		return
	}
	d.options = o.reporter(d.faults)
	if at := path("spec", "launchConfigRef"); b.poolSource(d.Infrastructure).has(at...) {
		d.optionsExclude(optionsTemplate, at, "other pools share that launch template; write spec.awsLaunchTemplate in the pool")
		return
	}
	if f := d.ForeignTemplate; f != nil {
		d.optionsExclude(optionsTemplate, f.NameField, "the pool has the launch template that it names; change that one")
		return
	}
	if d.Kind == intent.NodegroupPool {
		b.checkOptionsForEKS(d, t)
	}
	if d.LaunchTemplate == nil {
		b.templateForOptions(d)
	}
	d.checkOverlap(b.poolSource(d.Infrastructure), t)
	t.addTo(&d.LaunchTemplate.Data)
	d.coreGroups(t)
}

// coreGroups gives the cluster's security groups to network interfaces of a
// managed pool that name none: EKS adds its own only to templates without network
// interfaces, and the nodes could not join with the VPC's default group.
func (d *draft) coreGroups(t *TemplateOptions) {
	core := intent.Lookup{Kind: intent.CoreSecurityGroups, Cluster: d.ClusterKey}
	bare := slices.ContainsFunc(t.NetworkInterfaces, func(n NetworkInterface) bool { return len(n.Groups) == 0 })
	if lt := d.LaunchTemplate; bare && !slices.Contains(lt.SecurityGroups, core) {
		lt.SecurityGroups = append([]intent.Lookup{core}, lt.SecurityGroups...)
	}
}

// templateForOptions gives a managed pool without awsLaunchTemplate a template
// that holds its options and nothing else: all other things stay as EKS has them.
func (b *builder) templateForOptions(d *draft) {
	s := &b.index.managedPools[keyOf(d.Infrastructure)].Spec
	controlPlane := cmp.Or(d.cluster.controlPlaneName, d.ClusterKey.Name)
	b.launchTemplate(d, &LaunchTemplate{}, controlPlane+"-"+d.Infrastructure.Name, additionalTags(d.cluster, s.AdditionalTags), "")
	d.LaunchTemplate.Data.TagSpecifications = nil
	if !slices.ContainsFunc(d.faults.list, func(f Fault) bool { return f.Code == "too-many-tags" }) {
		d.checkTagCount(d.LaunchTemplate.Tags)
	}
	for field, instead := range map[string]string{"diskSize": "rootVolume.size", "remoteAccess": "sshKeyName and additionalSecurityGroups"} {
		if at := path("spec", field); b.poolSource(d.Infrastructure).has(at...) {
			d.optionsExclude(optionsTemplate, at, "write spec.awsLaunchTemplate."+instead+" in the pool: EKS takes spec."+field+" only without a launch template, which the options need")
		}
	}
}

// checkOptionsForEKS refuses what EKS refuses in the launch template of a
// nodegroup: LaunchTemplateSpecification in its API reference, and "Customize
// managed nodes with launch templates" in its user guide.
func (b *builder) checkOptionsForEKS(d *draft, t *TemplateOptions) {
	refuse := func(at intent.Path, detail string) {
		d.options.error(at, "not-allowed", fmt.Sprintf("%s is not allowed for a managed pool: EKS refuses a launch template that has it", at), detail)
	}
	if t.HibernationOptions != nil {
		refuse(optionsTemplate.Join("hibernationOptions"), "use an AWSMachinePool")
	}
	if t.InstanceInitiatedShutdownBehavior != "" {
		refuse(optionsTemplate.Join("instanceInitiatedShutdownBehavior"), "EKS ends instances itself")
	}
	for i := range t.NetworkInterfaces {
		if t.NetworkInterfaces[i].SubnetID != "" {
			refuse(optionsTemplate.Join("networkInterfaces", intent.Index(i), "subnetId"), "write spec.subnetIDs in the pool")
		}
	}
}

// checkOverlap reports options that say once more, or exclude, what the pool says.
func (d *draft) checkOverlap(pool Object, t *TemplateOptions) {
	lt := path("spec", "awsLaunchTemplate")
	for i := range t.NetworkInterfaces {
		if at := lt.Join("additionalSecurityGroups"); len(t.NetworkInterfaces[i].Groups) > 0 && pool.has(at...) {
			d.optionsExclude(optionsTemplate.Join("networkInterfaces", intent.Index(i), "groups"), at,
				"write all groups of the interfaces here, or leave groups out: the interfaces then have the pool's")
		}
	}
	if at := lt.Join("capacityReservationId"); t.reservationGroup() != "" && pool.has(at...) {
		d.optionsExclude(optionsTemplate.Join("capacityReservationSpecification", "capacityReservationTarget", "capacityReservationResourceGroupArn"), at, "instances are launched into the one or the other")
	}
	if e := d.LaunchTemplate.Data.EnclaveOptions; t.HibernationOptions != nil && isTrue(t.HibernationOptions.Configured) && e != nil && isTrue(e.Enabled) {
		d.optionsExclude(optionsTemplate.Join("hibernationOptions", "configured"), lt.Join("enclaveOptions", "enabled"), "EC2 has instances do the one or the other")
	}
}

// optionsExclude reports a field of the options and a field of the pool that
// exclude each other.
func (d *draft) optionsExclude(at, ofPool intent.Path, detail string) {
	d.faults.add(Fault{Code: "exclusive", Summary: fmt.Sprintf("%s excludes %s of %s", at, ofPool, d.Infrastructure), Detail: detail, Ref: d.Options, Path: at,
		Related: []RelatedField{{Ref: d.Infrastructure, Path: ofPool, Message: "the pool's field"}}})
}

func isTrue(v *bool) bool { return v != nil && *v }

func (t *TemplateOptions) reservationGroup() string {
	if c := t.CapacityReservationSpecification; c != nil && c.CapacityReservationTarget != nil {
		return c.CapacityReservationTarget.CapacityReservationResourceGroupARN
	}
	return ""
}

// addTo writes the options into template data.
func (t *TemplateOptions) addTo(out *intent.TemplateData) {
	if arn := t.reservationGroup(); arn != "" {
		c := intent.CapacityReservation{}
		if out.CapacityReservationSpecification != nil {
			c = *out.CapacityReservationSpecification
		}
		c.TargetGroupARN = arn
		out.CapacityReservationSpecification = &c
	}
	out.CPUOptions = (*intent.CPUOptions)(t.CPUOptions)
	out.CreditSpecification = (*intent.CreditSpecification)(t.CreditSpecification)
	out.DisableAPIStop, out.DisableAPITermination, out.EbsOptimized = t.DisableAPIStop, t.DisableAPITermination, t.EbsOptimized
	out.HibernationOptions = (*intent.HibernationOptions)(t.HibernationOptions)
	out.InstanceInitiatedShutdownBehavior, out.KernelID, out.RAMDiskID = t.InstanceInitiatedShutdownBehavior, t.KernelID, t.RAMDiskID
	for _, l := range t.LicenseSpecifications {
		out.LicenseSpecifications = append(out.LicenseSpecifications, intent.LicenseConfiguration(l))
	}
	out.MaintenanceOptions = (*intent.MaintenanceOptions)(t.MaintenanceOptions)
	out.Monitoring = (*intent.Monitoring)(t.Monitoring)
	for i := range t.NetworkInterfaces {
		out.NetworkInterfaces = append(out.NetworkInterfaces, t.NetworkInterfaces[i].intent())
	}
	out.NetworkPerformanceOptions = (*intent.NetworkPerformanceOptions)(t.NetworkPerformanceOptions)
	out.Placement = (*intent.Placement)(t.Placement)
}

func (n *NetworkInterface) intent() intent.NetworkInterface {
	out := intent.NetworkInterface{
		AssociateCarrierIPAddress: n.AssociateCarrierIPAddress, AssociatePublicIPAddress: n.AssociatePublicIPAddress,
		DeleteOnTermination: n.DeleteOnTermination, Description: n.Description, DeviceIndex: n.DeviceIndex, EnaQueueCount: n.EnaQueueCount,
		Groups: slices.Clone(n.Groups), InterfaceType: n.InterfaceType, IPv4PrefixCount: n.IPv4PrefixCount, IPv6AddressCount: n.IPv6AddressCount,
		IPv6PrefixCount: n.IPv6PrefixCount, NetworkCardIndex: n.NetworkCardIndex, PrimaryIPv6: n.PrimaryIPv6,
		SecondaryPrivateIPAddressCount: n.SecondaryPrivateIPAddressCount, SubnetID: n.SubnetID,
	}
	if c := n.ConnectionTrackingSpecification; c != nil && *c != (ConnectionTracking{}) {
		out.ConnectionTrackingSpecification = (*intent.ConnectionTracking)(c)
	}
	if e := n.EnaSrdSpecification; e != nil && *e != (EnaSrd{}) {
		out.EnaSrdSpecification = &intent.EnaSrd{EnaSrdEnabled: e.EnaSrdEnabled}
		if u := e.EnaSrdUDPSpecification; u != nil && *u != (EnaSrdUDP{}) {
			out.EnaSrdSpecification.EnaSrdUDPSpecification = (*intent.EnaSrdUDP)(u)
		}
	}
	return out
}
