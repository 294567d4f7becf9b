package manifest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/nearest"
)

// The checks in the files crosscheck*.go are those that no admission webhook
// makes: they look at several fields or objects at once, or at what AWS's
// documentation says that it refuses. What is refused for certain is an error;
// what AWS may take after all is a warning, and the rest is left to planning.

// crossCheckMachinePool checks a MachinePool by itself. The failure domains of
// other providers have other forms.
func crossCheckMachinePool(r reporter, s *MachinePoolSpec) {
	if kind := intent.PoolKind(s.Template.Spec.InfrastructureRef.Kind); kind == intent.GroupPool || kind == intent.NodegroupPool {
		checkZones(r, path("spec", "failureDomains"), s.FailureDomains)
	}
}

// crossCheckGroup checks a pool of kind AWSMachinePool by itself.
func crossCheckGroup(r reporter, s *AWSMachinePoolSpec, byArchitecture bool) {
	checkMixedPolicy(r, s)
	checkZones(r, path("spec", "availabilityZones"), s.AvailabilityZones)
	checkSubnetFilters(r, path("spec", "subnets"), s.Subnets)
	checkGroupFilters(r, path("spec", "awsLaunchTemplate", "additionalSecurityGroups"), s.AWSLaunchTemplate.AdditionalSecurityGroups)
	checkHookQuotas(r, s.LifecycleHooks)
	types := groupTypes(s)
	checkKnownTypes(r, types)
	if !byArchitecture {
		checkOneArchitecture(r, launched(types))
	}
}

// crossCheckNodegroup checks a pool of kind AWSManagedMachinePool by itself.
func crossCheckNodegroup(r reporter, s *AWSManagedMachinePoolSpec, amiTypeWritten bool) {
	checkNodegroupLabels(r, s)
	checkNodegroupTaints(r, s)
	checkRoleName(r, s.RoleName)
	checkZones(r, path("spec", "availabilityZones"), s.AvailabilityZones)
	if lt := s.AWSLaunchTemplate; lt != nil {
		checkGroupFilters(r, path("spec", "awsLaunchTemplate", "additionalSecurityGroups"), lt.AdditionalSecurityGroups)
		checkNodegroupMarket(r, lt)
	}
	types := nodegroupTypes(s)
	checkKnownTypes(r, types)
	checkAMIType(r, r.ref, s, types, amiTypeWritten)
}

// crossCheck checks a derived pool against its cluster and its bootstrap
// configuration. Of a pool that could not be derived, parts are missing.
func (b *builder) crossCheck(d *draft) {
	if d.cluster == nil {
		return
	}
	d.checkTagLengths()
	d.checkMetadataTags()
	switch d.Kind {
	case intent.GroupPool:
		o, ok := b.index.pools[keyOf(d.Infrastructure)]
		if !ok || d.Group == nil {
			return
		}
		d.checkPlacement(o.Spec.AvailabilityZones, o.Spec.AvailabilityZoneSubnetType, len(o.Spec.Subnets) > 0, "spec.subnets")
		d.checkFilterVPC(path("spec", "subnets"), o.Spec.Subnets)
		if d.LaunchTemplate != nil {
			d.checkImageArchitecture(&o.Spec.AWSLaunchTemplate, groupTypes(&o.Spec))
			d.checkBootstrapFitsImage(eksFamily(d.LaunchTemplate.Image))
		}
	case intent.NodegroupPool:
		o, ok := b.index.managedPools[keyOf(d.Infrastructure)]
		if !ok || d.Nodegroup == nil {
			return
		}
		d.checkPlacement(o.Spec.AvailabilityZones, o.Spec.AvailabilityZoneSubnetType, len(o.Spec.SubnetIDs) > 0, "spec.subnetIDs")
		if d.LaunchTemplate != nil && o.Spec.AWSLaunchTemplate != nil {
			if !slices.ContainsFunc(d.faults.list, func(f Fault) bool { return f.Code == "too-many-tags" }) {
				d.checkTagCount(d.LaunchTemplate.Tags)
			}
			if managedImage(&o.Spec) {
				d.checkImageArchitecture(o.Spec.AWSLaunchTemplate, nodegroupTypes(&o.Spec))
				d.checkBootstrapFitsImage(eksFamily(d.LaunchTemplate.Image))
			} else {
				d.checkBootstrapFitsImage(o.Spec.AMIType.family())
			}
		}
	}
}

// checkClusterKnown reports a pool whose Cluster is not in the render although
// the render has others, so that its name is likely misspelt, and one whose
// Cluster the build gave another name. A render without any Cluster is fine:
// clusters may be declared elsewhere.
func (b *builder) checkClusterKnown(mp *object[MachinePoolSpec]) {
	kind := intent.PoolKind(mp.Spec.Template.Spec.InfrastructureRef.Kind)
	key := intent.Key{Namespace: mp.key().Namespace, Name: mp.Spec.ClusterName}
	if _, known := b.clusters[key]; known || key.Name == "" || kind != intent.GroupPool && kind != intent.NodegroupPool {
		return
	}
	r, at := mp.reporter(b.faults), path("spec", "clusterName")
	if b.renamed != nil {
		if now, ok := b.renamed("Cluster", key.Name); ok {
			mp.broken = true
			r.error(at, "reference-not-found", fmt.Sprintf("Cluster %q, to which %s refers, is not in the render", key.Name, mp.ref()),
				fmt.Sprintf("the build renamed it to %q and did not change the reference: kustomize needs a nameReference configuration for kind Cluster "+
					"with the fields spec/clusterName and spec/template/spec/clusterName of MachinePool", now))
			return
		}
	}
	if len(b.clusters) == 0 {
		return
	}
	var names []string
	for k := range b.clusters {
		if k.Namespace == key.Namespace {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	detail := "its tags, its network and whether it is paused are not known"
	if near := nearest.Word(key.Name, names); near != "" {
		detail = fmt.Sprintf("did you mean %q? %s", near, detail)
	}
	r.warn(at, "cluster-not-in-render", fmt.Sprintf("Cluster %s is not in the render, but other clusters are", key), detail)
}

// typeField is an instance type and the field that names it.
type typeField struct {
	at   intent.Path
	name string
	// replaced says that overrides take its place, so that it is not launched.
	replaced bool
}

// groupTypes are the instance types that a group pool names.
func groupTypes(s *AWSMachinePoolSpec) []typeField {
	var overrides []Override
	if s.MixedInstancesPolicy != nil {
		overrides = s.MixedInstancesPolicy.Overrides
	}
	out := templateType(&s.AWSLaunchTemplate, len(overrides) > 0)
	for i, v := range overrides {
		out = append(out, typeField{at: path("spec", "mixedInstancesPolicy", "overrides", intent.Index(i), "instanceType"), name: v.InstanceType})
	}
	return out
}

// nodegroupTypes are the instance types that a managed pool names.
func nodegroupTypes(s *AWSManagedMachinePoolSpec) []typeField {
	var out []typeField
	if t := intent.Value(s.InstanceType); t != "" {
		out = append(out, typeField{at: path("spec", "instanceType"), name: t})
	}
	if s.AWSLaunchTemplate != nil {
		out = append(out, templateType(s.AWSLaunchTemplate, false)...)
	}
	return out
}

func templateType(lt *LaunchTemplate, replaced bool) []typeField {
	if lt.InstanceType == "" {
		return nil
	}
	return []typeField{{path("spec", "awsLaunchTemplate", "instanceType"), lt.InstanceType, replaced}}
}

// launched leaves out what overrides replace.
func launched(types []typeField) []typeField {
	return slices.DeleteFunc(slices.Clone(types), func(t typeField) bool { return t.replaced || t.name == "" })
}

// sizeOrder sorts parts of user data, the largest first.
func sizeOrder(a, b part) int { return cmp.Or(cmp.Compare(b.size, a.size), slices.Compare(a.at, b.at)) }
