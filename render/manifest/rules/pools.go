package rules

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// checkMachinePool applies Cluster API's rules for creation.
func checkMachinePool(o *kinds.Decoded[kinds.MachinePoolSpec], r kinds.Reporter) {
	spec := path("spec", "template", "spec")
	t := o.Spec.Template.Spec
	if o.Spec.ClusterName != "" && t.ClusterName != "" && o.Spec.ClusterName != t.ClusterName {
		r.To.Add(kinds.Fault{Code: "mismatch", Summary: fmt.Sprintf("spec.template.spec.clusterName is %q, but spec.clusterName is %q", t.ClusterName, o.Spec.ClusterName),
			Detail: "write the same cluster in both", Ref: r.Ref, Path: spec.Join("clusterName"),
			Related: []kinds.RelatedField{{Ref: r.Ref, Path: path("spec", "clusterName"), Message: "the other name"}}})
	}
	if t.Bootstrap.ConfigRef == nil && t.Bootstrap.DataSecretName == nil && t.Bootstrap.Data == nil {
		r.Error(spec.Join("bootstrap"), "missing-required", "spec.template.spec.bootstrap needs configRef or dataSecretName",
			`write dataSecretName: "" if the nodes need no bootstrap data`)
	}
	if t.Bootstrap.Data != nil {
		r.Unsupported(spec.Join("bootstrap", "data"), "bootstrap.data", "put the data in a Secret and name it in bootstrap.dataSecretName")
	}
	if t.Version != "" {
		if _, ok := kinds.ParseKubernetes(t.Version); !ok {
			r.Error(spec.Join("version"), "bad-version", fmt.Sprintf("%q is not a Kubernetes version", t.Version), "write all three parts, such as v1.31.2")
		}
	}
	if len(t.Taints) > 0 {
		r.Error(spec.Join("taints"), "not-allowed", "spec.template.spec.taints is not allowed on a MachinePool", "write taints in the bootstrap configuration or in AWSManagedMachinePool.spec.taints")
	}
	crossCheckMachinePool(r, &o.Spec)
	meta := path("spec", "template", "metadata")
	checkLabels(r, meta.Join("labels"), o.Spec.Template.Metadata.Labels, true)
	checkLabels(r, meta.Join("annotations"), o.Spec.Template.Metadata.Annotations, false)
	for _, ref := range []struct {
		at  intent.Path
		ref *kinds.ObjectReference
	}{{spec.Join("infrastructureRef"), &t.InfrastructureRef}, {spec.Join("bootstrap", "configRef"), t.Bootstrap.ConfigRef}} {
		if ref.ref != nil && ref.ref.Namespace != "" && ref.ref.Namespace != r.Ref.Namespace {
			r.Error(ref.at.Join("namespace"), "mismatch", fmt.Sprintf("%s names namespace %q, but the MachinePool is in %q", ref.at, ref.ref.Namespace, r.Ref.Namespace),
				"both must be in one namespace")
		}
	}
}

// checkAWSMachinePool applies CAPA's rules for creation, and two rules of AWS: bounds and refresh strategy.
func checkAWSMachinePool(o *kinds.Decoded[kinds.AWSMachinePoolSpec], r kinds.Reporter) {
	s, lt := &o.Spec, path("spec", "awsLaunchTemplate")
	if s.LaunchConfigRef == nil && !o.Source.Has("spec", "awsLaunchTemplate") && !kinds.BringsTemplate(o.Metadata) {
		r.Error(lt, "missing-required", "spec.awsLaunchTemplate is required", "write it, or name an AWSLaunchConfigTemplate in spec.launchConfigRef or a launch template of your own in annotation "+kinds.OwnTemplatePrefix+kinds.OwnName)
	}
	if s.MaxSize > 0 && s.MinSize > s.MaxSize {
		r.Error(path("spec", "minSize"), "out-of-range", fmt.Sprintf("spec.minSize is %d, above spec.maxSize %d", s.MinSize, s.MaxSize), "")
	}
	if s.DefaultCoolDown < 0 {
		r.Error(path("spec", "defaultCoolDown"), "out-of-range", "spec.defaultCoolDown is negative", "")
	}
	if s.DefaultInstanceWarmup < 0 {
		r.Error(path("spec", "defaultInstanceWarmup"), "out-of-range", "spec.defaultInstanceWarmup is negative", "")
	}
	CheckTags(r, path("spec", "additionalTags"), s.AdditionalTags)
	checkReferences(r, path("spec", "subnets"), s.Subnets)
	checkReferences(r, lt.Join("additionalSecurityGroups"), s.AWSLaunchTemplate.AdditionalSecurityGroups)
	checkHooks(r, s.LifecycleHooks)
	checkVolumes(r, lt, &s.AWSLaunchTemplate)
	checkMarket(r, lt, &s.AWSLaunchTemplate)
	checkImage(r, lt, &s.AWSLaunchTemplate)
	if m := s.MixedInstancesPolicy; m != nil {
		if s.AWSLaunchTemplate.SpotMarketOptions != nil {
			r.Error(lt.Join("spotMarketOptions"), "exclusive", "spec.awsLaunchTemplate.spotMarketOptions excludes spec.mixedInstancesPolicy",
				"write the share of spot instances in mixedInstancesPolicy.instancesDistribution")
		}
		seen := map[string]bool{}
		for i, v := range m.Overrides {
			if seen[v.InstanceType] {
				r.Error(path("spec", "mixedInstancesPolicy", "overrides", intent.Index(i), "instanceType"), "duplicate",
					fmt.Sprintf("instance type %q is written twice", v.InstanceType), "")
			}
			seen[v.InstanceType] = true
		}
	}
	if p := s.RefreshPreferences; p != nil {
		checkRefresh(r, p)
	}
	crossCheckGroup(r, s, kinds.ByArchitecture(o.Metadata))
}

func checkRefresh(r kinds.Reporter, p *kinds.RefreshPreferences) {
	at := path("spec", "refreshPreferences")
	if p.MaxHealthyPercentage == nil {
		return
	}
	if p.MinHealthyPercentage == nil {
		r.Error(at.Join("maxHealthyPercentage"), "incomplete", "spec.refreshPreferences.maxHealthyPercentage needs minHealthyPercentage", "")
	} else if *p.MaxHealthyPercentage-*p.MinHealthyPercentage > 100 {
		r.Error(at.Join("maxHealthyPercentage"), "out-of-range", "spec.refreshPreferences.maxHealthyPercentage is more than 100 above minHealthyPercentage", "")
	}
}

// checkImage checks the image fields of a launch template.
func checkImage(r kinds.Reporter, p intent.Path, lt *kinds.LaunchTemplate) {
	if lt.AMI.ID != nil {
		if name, parameter := strings.CutPrefix(*lt.AMI.ID, kinds.SSMPrefix); parameter && name == "" {
			r.Error(p.Join("ami", "id"), "bad-id", p.Join("ami", "id").String()+" names no parameter", "write resolve:ssm:NAME, or an image's id")
		}
	}
	if lt.ImageLookupFormat != "" {
		CheckImageFormat(r, p.Join("imageLookupFormat"), lt.ImageLookupFormat)
	}
}

// checkManagedPool applies CAPA's rules for creation, and EKS's rules that concern only the manifest.
func checkManagedPool(o *kinds.Decoded[kinds.AWSManagedMachinePoolSpec], r kinds.Reporter) {
	s := &o.Spec
	brings := kinds.BringsTemplate(o.Metadata)
	if brings && !o.Source.HasContent("spec", "awsLaunchTemplate") {
		s.AWSLaunchTemplate = nil // empty means absent
	}
	if brings && !o.Source.Has("spec", "amiType") {
		s.AMIType = "" // the launch template or EKS decides
	}
	if c := s.Scaling; c != nil && c.MinSize != nil && c.MaxSize != nil && *c.MinSize > *c.MaxSize {
		r.Error(path("spec", "scaling", "minSize"), "out-of-range", fmt.Sprintf("spec.scaling.minSize is %d, above spec.scaling.maxSize %d", *c.MinSize, *c.MaxSize), "")
	}
	if a := s.RemoteAccess; a != nil && a.Public && len(a.SourceSecurityGroups) > 0 {
		r.Error(path("spec", "remoteAccess", "sourceSecurityGroups"), "exclusive", "spec.remoteAccess.sourceSecurityGroups must be empty when public is true", "")
	}
	if u := s.UpdateConfig; u != nil {
		n := 0
		for _, v := range []*int32{u.MaxUnavailable, u.MaxUnavailablePercentage, u.MaxUnavailablePrecentage} {
			if v != nil {
				n++
			}
		}
		if n != 1 {
			r.Error(path("spec", "updateConfig"), "exclusive", "spec.updateConfig needs exactly one of maxUnavailable and its percentage", "")
		}
	}
	CheckTags(r, path("spec", "additionalTags"), s.AdditionalTags)
	checkHooks(r, s.LifecycleHooks)
	checkHookQuotas(r, s.LifecycleHooks)
	checkNodegroupHooks(r, s.LifecycleHooks)
	checkRole(r, s)
	checkManagedTemplate(r, s, brings)
	if !brings {
		warnUnusedAMIType(o, r)
		suggestLaunchTemplate(o, r)
	}
	crossCheckNodegroup(r, s, o.Source.Has("spec", "amiType"))
}

// checkManagedTemplate checks the launch template of a managed pool, and the fields that it excludes.
// brings is true if the pool names a foreign launch template.
func checkManagedTemplate(r kinds.Reporter, s *kinds.AWSManagedMachinePoolSpec, brings bool) {
	lt, p := s.AWSLaunchTemplate, path("spec", "awsLaunchTemplate")
	if lt == nil {
		if s.AMIType == "CUSTOM" && s.LaunchConfigRef == nil && !brings {
			r.Error(path("spec", "amiType"), "incomplete", "spec.amiType CUSTOM needs spec.awsLaunchTemplate", "name the image in spec.awsLaunchTemplate.ami.id")
		}
		return
	}
	excluded := func(at intent.Path, written bool, detail string) {
		if written {
			r.Error(at, "exclusive", at.String()+" excludes spec.awsLaunchTemplate", detail)
		}
	}
	excluded(path("spec", "instanceType"), s.InstanceType != nil, "write spec.awsLaunchTemplate.instanceType")
	excluded(path("spec", "diskSize"), s.DiskSize != nil, "write "+diskField(s))
	excluded(path("spec", "remoteAccess"), s.RemoteAccess != nil, "write spec.awsLaunchTemplate.sshKeyName and additionalSecurityGroups")
	if lt.IamInstanceProfile != "" {
		r.Error(p.Join("iamInstanceProfile"), "exclusive", "spec.awsLaunchTemplate.iamInstanceProfile is not allowed for a managed pool", "write spec.roleName")
	}
	if lt.SpotMarketOptions != nil || lt.MarketType == "Spot" {
		at := p.Join("spotMarketOptions")
		if lt.SpotMarketOptions == nil {
			at = p.Join("marketType")
		}
		r.Error(at, "exclusive", "a managed pool's launch template must not request spot instances", "write spec.capacityType: spot")
	}
	if s.AMIVersion != nil && kinds.ManagedImage(s) {
		r.Error(path("spec", "amiVersion"), "exclusive", "spec.amiVersion cannot be combined with your own image in spec.awsLaunchTemplate", "")
	}
	checkReferences(r, p.Join("additionalSecurityGroups"), lt.AdditionalSecurityGroups)
	checkVolumes(r, p, lt)
	checkMarket(r, p, lt)
	checkImage(r, p, lt)
}

// No admission webhook makes the checks of the functions crossCheck…. They check several fields or objects
// together, or check for values that AWS refuses according to its documentation. A certain refusal is an
// error, and a possible one a warning. The planner checks everything else.

// crossCheckMachinePool checks a MachinePool. It skips the failure domains of other providers, because they
// have other forms.
func crossCheckMachinePool(r kinds.Reporter, s *kinds.MachinePoolSpec) {
	if kind := intent.PoolKind(s.Template.Spec.InfrastructureRef.Kind); kind == intent.GroupPool || kind == intent.NodegroupPool {
		checkZones(r, path("spec", "failureDomains"), s.FailureDomains)
	}
}

// crossCheckGroup checks a pool of kind AWSMachinePool.
func crossCheckGroup(r kinds.Reporter, s *kinds.AWSMachinePoolSpec, byArchitecture bool) {
	checkMixedPolicy(r, s)
	checkZones(r, path("spec", "availabilityZones"), s.AvailabilityZones)
	checkSubnetFilters(r, path("spec", "subnets"), s.Subnets)
	checkGroupFilters(r, path("spec", "awsLaunchTemplate", "additionalSecurityGroups"), s.AWSLaunchTemplate.AdditionalSecurityGroups)
	checkHookQuotas(r, s.LifecycleHooks)
	types := kinds.GroupTypes(s)
	checkKnownTypes(r, types)
	if !byArchitecture {
		checkOneArchitecture(r, kinds.Launched(types))
	}
}

// crossCheckNodegroup checks a pool of kind AWSManagedMachinePool.
func crossCheckNodegroup(r kinds.Reporter, s *kinds.AWSManagedMachinePoolSpec, amiTypeWritten bool) {
	checkNodegroupLabels(r, s)
	checkNodegroupTaints(r, s)
	checkZones(r, path("spec", "availabilityZones"), s.AvailabilityZones)
	if lt := s.AWSLaunchTemplate; lt != nil {
		checkGroupFilters(r, path("spec", "awsLaunchTemplate", "additionalSecurityGroups"), lt.AdditionalSecurityGroups)
		checkNodegroupMarket(r, lt)
	}
	types := kinds.NodegroupTypes(s)
	checkKnownTypes(r, types)
	CheckAMIType(r, r.Ref, s, types, amiTypeWritten)
}
