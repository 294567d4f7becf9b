package manifest

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// checkMachinePool applies Cluster API's rules at creation.
func checkMachinePool(o *object[MachinePoolSpec], r reporter) {
	spec := path("spec", "template", "spec")
	t := o.Spec.Template.Spec
	if o.Spec.ClusterName != "" && t.ClusterName != "" && o.Spec.ClusterName != t.ClusterName {
		r.to.add(Fault{Code: "mismatch", Summary: fmt.Sprintf("spec.template.spec.clusterName is %q, but spec.clusterName is %q", t.ClusterName, o.Spec.ClusterName),
			Detail: "write the same cluster in both", Ref: r.ref, Path: spec.Join("clusterName"),
			Related: []RelatedField{{Ref: r.ref, Path: path("spec", "clusterName"), Message: "the other name"}}})
	}
	if t.Bootstrap.ConfigRef == nil && t.Bootstrap.DataSecretName == nil && t.Bootstrap.Data == nil {
		r.error(spec.Join("bootstrap"), "missing-required", "spec.template.spec.bootstrap needs configRef or dataSecretName",
			`write dataSecretName: "" if the nodes need no bootstrap data`)
	}
	if t.Bootstrap.Data != nil {
		r.unsupported(spec.Join("bootstrap", "data"), "bootstrap.data", "put the data in a Secret and name it in bootstrap.dataSecretName")
	}
	if t.Version != "" {
		if _, ok := parseKubernetes(t.Version); !ok {
			r.error(spec.Join("version"), "bad-version", fmt.Sprintf("%q is no Kubernetes version", t.Version), "write all three parts, such as v1.31.2")
		}
	}
	if len(t.Taints) > 0 {
		r.error(spec.Join("taints"), "not-allowed", "spec.template.spec.taints is not allowed on a MachinePool", "write taints in the bootstrap configuration or in AWSManagedMachinePool.spec.taints")
	}
	crossCheckMachinePool(r, &o.Spec)
	meta := path("spec", "template", "metadata")
	checkLabels(r, meta.Join("labels"), o.Spec.Template.Metadata.Labels, true)
	checkLabels(r, meta.Join("annotations"), o.Spec.Template.Metadata.Annotations, false)
	for _, ref := range []struct {
		at  intent.Path
		ref *ObjectReference
	}{{spec.Join("infrastructureRef"), &t.InfrastructureRef}, {spec.Join("bootstrap", "configRef"), t.Bootstrap.ConfigRef}} {
		if ref.ref != nil && ref.ref.Namespace != "" && ref.ref.Namespace != r.ref.Namespace {
			r.error(ref.at.Join("namespace"), "mismatch", fmt.Sprintf("%s names namespace %q, but the MachinePool is in %q", ref.at, ref.ref.Namespace, r.ref.Namespace),
				"both must be in one namespace")
		}
	}
}

// checkAWSMachinePool applies CAPA's rules at creation, and two that AWS has:
// the bounds and the refresh strategy.
func checkAWSMachinePool(o *object[AWSMachinePoolSpec], r reporter) {
	s, lt := &o.Spec, path("spec", "awsLaunchTemplate")
	if s.LaunchConfigRef == nil && !o.source.has("spec", "awsLaunchTemplate") && !bringsTemplate(o.Metadata) {
		r.error(lt, "missing-required", "spec.awsLaunchTemplate is required", "write it, or name an AWSLaunchConfigTemplate in spec.launchConfigRef or a launch template of your own in annotation "+ownTemplatePrefix+ownName)
	}
	if s.MaxSize > 0 && s.MinSize > s.MaxSize {
		r.error(path("spec", "minSize"), "out-of-range", fmt.Sprintf("spec.minSize is %d, above spec.maxSize %d", s.MinSize, s.MaxSize), "")
	}
	if s.DefaultCoolDown.Duration < 0 {
		r.error(path("spec", "defaultCoolDown"), "out-of-range", "spec.defaultCoolDown is negative", "")
	}
	if s.DefaultInstanceWarmup.Duration < 0 {
		r.error(path("spec", "defaultInstanceWarmup"), "out-of-range", "spec.defaultInstanceWarmup is negative", "")
	}
	checkTags(r, path("spec", "additionalTags"), s.AdditionalTags)
	checkReferences(r, path("spec", "subnets"), s.Subnets, "subnet-")
	checkReferences(r, lt.Join("additionalSecurityGroups"), s.AWSLaunchTemplate.AdditionalSecurityGroups, "sg-")
	checkHooks(r, s.LifecycleHooks)
	checkVolumes(r, lt, &s.AWSLaunchTemplate)
	checkMarket(r, lt, &s.AWSLaunchTemplate)
	checkImage(r, lt, &s.AWSLaunchTemplate)
	if m := s.MixedInstancesPolicy; m != nil {
		if s.AWSLaunchTemplate.SpotMarketOptions != nil {
			r.error(lt.Join("spotMarketOptions"), "exclusive", "spec.awsLaunchTemplate.spotMarketOptions excludes spec.mixedInstancesPolicy",
				"say the share of spot instances in mixedInstancesPolicy.instancesDistribution")
		}
		seen := map[string]bool{}
		for i, v := range m.Overrides {
			if seen[v.InstanceType] {
				r.error(path("spec", "mixedInstancesPolicy", "overrides", intent.Index(i), "instanceType"), "duplicate",
					fmt.Sprintf("instance type %q is written twice", v.InstanceType), "")
			}
			seen[v.InstanceType] = true
		}
	}
	if p := s.RefreshPreferences; p != nil {
		checkRefresh(r, p)
	}
	crossCheckGroup(r, s, byArchitecture(o.Metadata))
}

func checkRefresh(r reporter, p *RefreshPreferences) {
	at := path("spec", "refreshPreferences")
	if p.MaxHealthyPercentage == nil {
		return
	}
	if p.MinHealthyPercentage == nil {
		r.error(at.Join("maxHealthyPercentage"), "incomplete", "spec.refreshPreferences.maxHealthyPercentage needs minHealthyPercentage", "")
	} else if *p.MaxHealthyPercentage-*p.MinHealthyPercentage > 100 {
		r.error(at.Join("maxHealthyPercentage"), "out-of-range", "spec.refreshPreferences.maxHealthyPercentage is more than 100 above minHealthyPercentage", "")
	}
}

// checkImage checks what a launch template says about its image.
func checkImage(r reporter, p intent.Path, lt *LaunchTemplate) {
	if lt.AMI.ID != nil {
		switch name, parameter := strings.CutPrefix(*lt.AMI.ID, ssmPrefix); {
		case !parameter:
			checkID(r, p.Join("ami", "id"), name, "ami-")
		case name == "":
			r.error(p.Join("ami", "id"), "bad-id", p.Join("ami", "id").String()+" names no parameter", "write resolve:ssm:NAME, or an image's id")
		}
	}
	if lt.ImageLookupFormat != "" {
		checkImageFormat(r, p.Join("imageLookupFormat"), lt.ImageLookupFormat)
	}
}

// checkManagedPool applies CAPA's rules at creation, and those of EKS that can
// be told from the manifest.
func checkManagedPool(o *object[AWSManagedMachinePoolSpec], r reporter) {
	s := &o.Spec
	brings := bringsTemplate(o.Metadata)
	if brings && !o.source.hasContent("spec", "awsLaunchTemplate") {
		s.AWSLaunchTemplate = nil // an empty one counts as absent
	}
	if brings && !o.source.has("spec", "amiType") {
		s.AMIType = "" // the template decides, or else EKS
	}
	if c := s.Scaling; c != nil && c.MinSize != nil && c.MaxSize != nil && *c.MinSize > *c.MaxSize {
		r.error(path("spec", "scaling", "minSize"), "out-of-range", fmt.Sprintf("spec.scaling.minSize is %d, above spec.scaling.maxSize %d", *c.MinSize, *c.MaxSize), "")
	}
	if a := s.RemoteAccess; a != nil && a.Public && len(a.SourceSecurityGroups) > 0 {
		r.error(path("spec", "remoteAccess", "sourceSecurityGroups"), "exclusive", "spec.remoteAccess.sourceSecurityGroups must be empty when public is true", "")
	}
	if u := s.UpdateConfig; u != nil {
		n := 0
		for _, v := range []*int32{u.MaxUnavailable, u.MaxUnavailablePercentage, u.MaxUnavailablePrecentage} {
			if v != nil {
				n++
			}
		}
		if n != 1 {
			r.error(path("spec", "updateConfig"), "exclusive", "spec.updateConfig needs exactly one of maxUnavailable and its percentage", "")
		}
	}
	for i, id := range s.SubnetIDs {
		checkID(r, path("spec", "subnetIDs", intent.Index(i)), id, "subnet-")
	}
	checkTags(r, path("spec", "additionalTags"), s.AdditionalTags)
	checkHooks(r, s.LifecycleHooks)
	checkHookQuotas(r, s.LifecycleHooks)
	checkNodegroupHooks(r, s.LifecycleHooks)
	checkPermissions(r, s)
	checkManagedTemplate(r, s, brings)
	if !brings {
		noteOlderFields(o, r)
	}
	crossCheckNodegroup(r, s, o.source.has("spec", "amiType"))
}

// checkPermissions refuses the fields by which a file in Git would make or widen
// an IAM role.
func checkPermissions(r reporter, s *AWSManagedMachinePoolSpec) {
	for field, written := range map[string]bool{
		"roleAdditionalPolicies": len(s.RoleAdditionalPolicies) > 0, "rolePath": s.RolePath != "", "rolePermissionsBoundary": s.RolePermissionsBoundary != "",
	} {
		if written {
			r.error(path("spec", field), "iam-from-git", "spec."+field+" is refused: weir does not make or change IAM roles",
				"make the role elsewhere and name it in spec.roleName")
		}
	}
}

func checkManagedTemplate(r reporter, s *AWSManagedMachinePoolSpec, brings bool) {
	lt, p := s.AWSLaunchTemplate, path("spec", "awsLaunchTemplate")
	if lt == nil {
		if s.AMIType == "CUSTOM" && s.LaunchConfigRef == nil && !brings {
			r.error(path("spec", "amiType"), "incomplete", "spec.amiType CUSTOM needs spec.awsLaunchTemplate", "name the image in spec.awsLaunchTemplate.ami.id")
		}
		return
	}
	excluded := func(at intent.Path, written bool, detail string) {
		if written {
			r.error(at, "exclusive", at.String()+" excludes spec.awsLaunchTemplate", detail)
		}
	}
	excluded(path("spec", "instanceType"), s.InstanceType != nil, "write spec.awsLaunchTemplate.instanceType")
	excluded(path("spec", "diskSize"), s.DiskSize != nil, "write spec.awsLaunchTemplate.rootVolume.size")
	excluded(path("spec", "remoteAccess"), s.RemoteAccess != nil, "write spec.awsLaunchTemplate.sshKeyName and additionalSecurityGroups")
	if lt.IamInstanceProfile != "" {
		r.error(p.Join("iamInstanceProfile"), "exclusive", "spec.awsLaunchTemplate.iamInstanceProfile is not allowed for a managed pool", "write spec.roleName")
	}
	if lt.SpotMarketOptions != nil || lt.MarketType == "Spot" {
		at := p.Join("spotMarketOptions")
		if lt.SpotMarketOptions == nil {
			at = p.Join("marketType")
		}
		r.error(at, "exclusive", "a managed pool's launch template may not ask for spot instances", "write spec.capacityType: spot")
	}
	if s.AMIVersion != nil && managedImage(s) {
		r.error(path("spec", "amiVersion"), "exclusive", "spec.amiVersion excludes an image of one's own in spec.awsLaunchTemplate", "")
	}
	checkReferences(r, p.Join("additionalSecurityGroups"), lt.AdditionalSecurityGroups, "sg-")
	checkVolumes(r, p, lt)
	checkMarket(r, p, lt)
	checkImage(r, p, lt)
}

// managedImage says that a managed pool's image comes from its launch template:
// an id, a written lookup, or CUSTOM. Otherwise EKS chooses it.
func managedImage(s *AWSManagedMachinePoolSpec) bool {
	lt := s.AWSLaunchTemplate
	return lt != nil && (lt.AMI.ID != nil || lt.AMI.EKSLookupType != nil || s.AMIType == "CUSTOM" ||
		lt.ImageLookupFormat != "" || lt.ImageLookupOrg != "" || lt.ImageLookupBaseOS != "")
}
