package manifest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

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
		switch ref.Kind {
		case string(intent.GroupPool):
			_, known = b.index.pools[key]
		case string(intent.NodegroupPool):
			_, known = b.index.managedPools[key]
		case kindLaunchConfig:
			_, known = b.index.configs[key]
		case kindLaunchConfigTemplate:
			_, known = b.index.configTemplates[key]
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

// poolVersion is the apiVersion of an object that PoolOptions may name and that is
// known to be there.
func (b *builder) poolVersion(id poolID) string {
	key := intent.Key{Namespace: id.namespace, Name: id.name}
	switch id.kind {
	case string(intent.GroupPool):
		return b.index.pools[key].ref().APIVersion
	case kindLaunchConfig:
		return b.index.configs[key].ref().APIVersion
	case kindLaunchConfigTemplate:
		return b.index.configTemplates[key].ref().APIVersion
	}
	return b.index.managedPools[key].ref().APIVersion
}

// relateToPool shows, beside a member that belongs into the pool, where the pool
// sets it.
func (b *builder) relateToPool(o *object[PoolOptionsSpec], pool intent.ObjectRef) {
	source, config := b.poolSource(pool), intent.LaunchConfig{Source: pool}
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
		at = path("spec").Join(at...)
		if field, is := config.Field(at); is && isLaunchConfig(pool.Kind) {
			f.Detail = strings.Replace(f.Detail, at.String()+" in the pool", field.String()+" in "+pool.String(), 1)
			at = field
		}
		if ok && source.has(at...) {
			f.Related = append(f.Related, RelatedField{Ref: pool, Path: at, Message: "the pool sets it"})
		}
	}
}

func (b *builder) poolSource(pool intent.ObjectRef) Object {
	key := keyOf(pool)
	switch pool.Kind {
	case string(intent.GroupPool):
		return b.index.pools[key].source
	case kindLaunchConfig:
		return b.index.configs[key].source
	case kindLaunchConfigTemplate:
		return b.index.configTemplates[key].source
	}
	return b.index.managedPools[key].source
}

func isLaunchConfig(kind string) bool {
	return kind == kindLaunchConfig || kind == kindLaunchConfigTemplate
}

// applyPoolOptions adds to a pool what its PoolOptions says, and what those say of
// the launch template that it shares.
func (b *builder) applyPoolOptions(d *draft) {
	if d.Group == nil && d.Nodegroup == nil {
		return // what is missing was reported
	}
	options := func(ref intent.ObjectRef) *object[PoolOptionsSpec] {
		o, ok := b.poolOptions[poolID{ref.Namespace, ref.Kind, ref.Name}]
		// What is wrong in them was said, and what else is wrong is said all the same.
		d.broken = d.broken || ok && o.broken || !ok && b.strayOptions[ref.Namespace]
		return o
	}
	if o := options(d.Infrastructure); o != nil {
		d.Options = o.ref()
		b.applyTemplateOptions(d, o)
		b.applyGroupOptions(d, o)
		b.applyNodegroupOptions(d, o)
	}
	if d.LaunchConfig == nil || d.LaunchTemplate == nil {
		return
	}
	if o := options(d.LaunchConfig.Source); o != nil {
		d.LaunchConfig.Options, d.options = o.ref(), o.reporter(d.faults)
		if t := o.Spec.LaunchTemplate; t != nil {
			b.addTemplateOptions(d, t)
		}
	}
}

// applyTemplateOptions adds what the options say of the pool's launch template.
func (b *builder) applyTemplateOptions(d *draft, o *object[PoolOptionsSpec]) {
	t := o.Spec.LaunchTemplate
	if t == nil || reflect.ValueOf(*t).IsZero() {
		return
	}
	d.options = o.reporter(d.faults)
	if at := path("spec", "launchConfigRef"); b.poolSource(d.Infrastructure).has(at...) {
		detail := "it is the launch template of all pools that name it"
		if d.LaunchConfig != nil {
			detail = "write it in a PoolOptions whose poolRef names " + d.LaunchConfig.Source.String()
		}
		d.optionsExclude(optionsTemplate, at, detail)
		return
	}
	if f := d.ForeignTemplate; f != nil {
		d.optionsExclude(optionsTemplate, f.NameField, "the pool has the launch template that it names; change that one")
		return
	}
	b.addTemplateOptions(d, t)
}

// addTemplateOptions adds options to a launch template, of the pool's own or shared.
func (b *builder) addTemplateOptions(d *draft, t *TemplateOptions) {
	if d.Kind == intent.NodegroupPool {
		t = b.optionsForEKS(d, t)
	}
	if d.LaunchTemplate == nil {
		b.templateForOptions(d)
	}
	b.checkOverlap(d, t)
	t.addTo(&d.LaunchTemplate.Data)
	d.coreGroups(t)
}

// coreGroups gives the cluster's security groups to network interfaces of a
// managed pool that name none: EKS adds its own only to templates without network
// interfaces, and the nodes could not join with the VPC's default group.
func (d *draft) coreGroups(t *TemplateOptions) {
	core := intent.Lookup{Kind: intent.CoreSecurityGroups, Cluster: d.ClusterKey}
	bare := slices.ContainsFunc(t.NetworkInterfaces, func(n intent.NetworkInterface) bool { return len(n.Groups) == 0 })
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

// optionsForEKS refuses what EKS refuses in the launch template of a nodegroup:
// LaunchTemplateSpecification in its API reference, and "Customize managed nodes with
// launch templates" in its user guide. What group pools may need that share the
// template is left out.
func (b *builder) optionsForEKS(d *draft, t *TemplateOptions) *TemplateOptions {
	out := *t
	refuse := func(at intent.Path, detail string) {
		d.options.error(at, "not-allowed", fmt.Sprintf("%s is not allowed for a managed pool: EKS refuses a launch template that has it", at), detail)
	}
	apart := refuse
	if d.LaunchConfig != nil {
		apart = func(at intent.Path, detail string) {
			d.options.info(at, "not-carried", at.String()+" has no effect on managed pools: EKS takes it from no launch template", detail)
		}
	}
	if t.HibernationOptions != nil {
		apart(optionsTemplate.Join("hibernationOptions"), "use an AWSMachinePool")
		out.HibernationOptions = nil
	}
	if t.InstanceInitiatedShutdownBehavior != "" {
		apart(optionsTemplate.Join("instanceInitiatedShutdownBehavior"), "EKS ends instances itself")
		out.InstanceInitiatedShutdownBehavior = ""
	}
	for i := range t.NetworkInterfaces {
		if t.NetworkInterfaces[i].SubnetID != "" {
			refuse(optionsTemplate.Join("networkInterfaces", intent.Index(i), "subnetId"), "write spec.subnetIDs in the pool")
		}
	}
	return &out
}

// checkOverlap reports options that say once more, or exclude, what the pool says, or
// what declares the launch template that it shares.
func (b *builder) checkOverlap(d *draft, t *TemplateOptions) {
	lt := path("spec", "awsLaunchTemplate")
	has := func(field string) bool {
		ref, at := d.declares(lt.Join(field))
		return b.poolSource(ref).has(at...)
	}
	for i := range t.NetworkInterfaces {
		if len(t.NetworkInterfaces[i].Groups) > 0 && has("additionalSecurityGroups") {
			d.optionsExclude(optionsTemplate.Join("networkInterfaces", intent.Index(i), "groups"), lt.Join("additionalSecurityGroups"),
				"write all groups of the interfaces here, or leave groups out: the interfaces then have the pool's")
		}
	}
	if t.reservationGroup() != "" && has("capacityReservationId") {
		d.optionsExclude(optionsTemplate.Join("capacityReservationSpecification", "capacityReservationTarget", "capacityReservationResourceGroupArn"), lt.Join("capacityReservationId"), "instances are launched into the one or the other")
	}
	if e := d.LaunchTemplate.Data.EnclaveOptions; t.HibernationOptions != nil && intent.Value(t.HibernationOptions.Configured) && e != nil && intent.Value(e.Enabled) {
		d.optionsExclude(optionsTemplate.Join("hibernationOptions", "configured"), lt.Join("enclaveOptions", "enabled"), "EC2 has instances do the one or the other")
	}
}

// declares is the object that has a field of the pool, and where: of a launch template
// that pools share, what declares it.
func (d *draft) declares(ofPool intent.Path) (ref intent.ObjectRef, at intent.Path) {
	if d.LaunchConfig != nil {
		if at, ok := d.LaunchConfig.Field(ofPool); ok {
			return d.LaunchConfig.Source, at
		}
	}
	return d.Infrastructure, ofPool
}

// optionsExclude reports a field of the options and a field of the pool that
// exclude each other.
func (d *draft) optionsExclude(at, ofPool intent.Path, detail string) {
	ref, field := d.declares(ofPool)
	d.faults.add(Fault{Code: "exclusive", Summary: fmt.Sprintf("%s excludes %s of %s", at, field, ref), Detail: detail, Ref: d.options.ref, Path: at,
		Related: []RelatedField{{Ref: ref, Path: field, Message: "the pool's field"}}})
}

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
	from, to := reflect.ValueOf(&t.TemplateData).Elem(), reflect.ValueOf(out).Elem()
	for i := range from.NumField() {
		if v := from.Field(i); !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0) {
			to.Field(i).Set(from.Field(i))
		}
	}
	out.NetworkInterfaces = slices.Clone(out.NetworkInterfaces)
	for i := range out.NetworkInterfaces {
		leaveOutEmpty(&out.NetworkInterfaces[i])
	}
}

// leaveOutEmpty takes out of an interface what says nothing.
func leaveOutEmpty(n *intent.NetworkInterface) {
	if c := n.ConnectionTrackingSpecification; c != nil && *c == (intent.ConnectionTracking{}) {
		n.ConnectionTrackingSpecification = nil
	}
	e := n.EnaSrdSpecification
	if e == nil {
		return
	}
	e = &intent.EnaSrd{EnaSrdEnabled: e.EnaSrdEnabled, EnaSrdUDPSpecification: e.EnaSrdUDPSpecification}
	if u := e.EnaSrdUDPSpecification; u != nil && *u == (intent.EnaSrdUDP{}) {
		e.EnaSrdUDPSpecification = nil
	}
	if n.EnaSrdSpecification = e; *e == (intent.EnaSrd{}) {
		n.EnaSrdSpecification = nil
	}
}
