package plan

import (
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
)

// immutable refuses a change of what EKS cannot change in place.
func (c *computation) immutable(w wantNodegroup, have Nodegroup) {
	n := w.pool.Nodegroup
	refuse := func(path intent.Path, from, to any) {
		c.blockf(w.pool, append(intent.Path{"spec"}, path...), "nodegroup-immutable",
			"EKS cannot change "+path.String()+" of the nodegroup "+n.Name+" in place (it is "+text(from)+", wanted "+text(to)+")",
			"put the old value back, or give the pool another eksNodegroupName")
	}
	if !slices.Equal(have.SubnetIDs, w.subnets) {
		refuse(intent.Path{"subnetIDs"}, join(have.SubnetIDs), join(w.subnets))
	}
	if have.CapacityType != n.CapacityType {
		refuse(intent.Path{"capacityType"}, have.CapacityType, n.CapacityType)
	}
	if have.NodeRole != w.role {
		refuse(intent.Path{"roleName"}, have.NodeRole, w.role)
	}
	if !w.hasImage && n.AMIType != "" && have.AMIType != n.AMIType {
		refuse(intent.Path{"amiType"}, have.AMIType, n.AMIType)
	}
	if (have.Template.ID != "") != w.hasTemplate {
		refuse(intent.Path{"awsLaunchTemplate"}, have.Template.Name, w.version.ref.Name)
		return
	}
	if f := w.pool.ForeignTemplate; f != nil && have.Template.ID != w.version.template.ID {
		c.blockf(w.pool, f.NameField, "nodegroup-immutable", "EKS cannot give the nodegroup "+n.Name+" another launch template in place (it has "+quote(have.Template.Name)+", wanted "+quote(w.version.template.Name)+")",
			"name the old one, or give the pool another eksNodegroupName")
	} else if w.hasTemplate && w.version.found && have.Template.ID != w.version.template.ID {
		refuse(intent.Path{"awsLaunchTemplate", "name"}, have.Template.Name, w.version.template.Name)
	}
	if n.InstanceType != "" && !reflect.DeepEqual(have.InstanceTypes, []string{n.InstanceType}) {
		refuse(intent.Path{"instanceType"}, join(have.InstanceTypes), n.InstanceType)
	}
	if w.version.foreign && !w.hasImage && have.AMIType == customImage {
		refuse(intent.Path{"amiType"}, have.AMIType, cmpOr(n.AMIType, "an image of EKS"))
	}
	if w.hasImage && have.AMIType != "" && have.AMIType != customImage {
		refuse(intent.Path{"amiType"}, have.AMIType, customImage)
	}
	if !w.hasTemplate {
		if want := c.remoteAccess(w); !sameAccess(have.RemoteAccess, want) {
			refuse(intent.Path{"remoteAccess"}, accessText(have.RemoteAccess), accessText(want))
		}
	}
	if !w.hasTemplate && n.DiskSize != 0 && have.DiskSize != n.DiskSize {
		refuse(intent.Path{"diskSize"}, itoa(have.DiskSize), itoa(n.DiskSize))
	}
}

func sameAccess(have, want *intent.RemoteAccess) bool {
	return accessText(have) == accessText(want)
}

// accessText says who may log in; EKS shows an empty block where nobody may.
func accessText(a *intent.RemoteAccess) string {
	if a == nil || a.EC2SSHKey == "" {
		return ""
	}
	return "key " + a.EC2SSHKey + " from " + join(sortedUnique(slices.Clone(a.SourceSecurityGroups)))
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return quote(s)
	}
	return "?"
}
