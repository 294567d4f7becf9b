package nodegroup

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/render/intent"
)

// immutable is a field of a nodegroup that differs and that EKS cannot change in
// place: UpdateNodegroupConfig and UpdateNodegroupVersion take no such member.
type immutable struct {
	field string
	// path is the manifest field.
	path     intent.Path
	object   intent.ObjectRef
	from, to string
}

// immutables returns the fields of a nodegroup that differ and cannot be changed.
// A member that Git leaves to EKS never differs.
func (w wantNodegroup) immutables(have observed.Nodegroup) []immutable {
	n := w.pool.Nodegroup
	var out []immutable
	differ := func(field, from, to string) {
		path := intent.Path{"spec"}.Join(basis.FieldPath(field)...)
		out = append(out, immutable{field: field, path: path, object: w.pool.Infrastructure, from: from, to: to})
	}
	if subnets := w.writtenSubnets(); len(subnets) > 0 && !slices.Equal(have.SubnetIDs, subnets) {
		differ("subnetIDs", strings.Join(have.SubnetIDs, ", "), strings.Join(subnets, ", "))
	}
	if have.CapacityType != n.CapacityType {
		differ("capacityType", have.CapacityType, n.CapacityType)
	}
	if have.NodeRole != w.role {
		differ("roleName", have.NodeRole, w.role)
	}
	if !w.hasImage && n.AMIType != "" && have.AMIType != n.AMIType {
		differ("amiType", have.AMIType, n.AMIType)
	}
	if (have.Template.ID != "") != w.hasTemplate {
		differ("awsLaunchTemplate", have.Template.Name, w.version.Ref.Name)
		return out
	}
	if f := w.pool.ForeignTemplate; f != nil && have.Template.ID != w.version.Template.ID {
		out = append(out, immutable{field: "launch template", path: f.NameField, object: w.pool.Infrastructure, from: have.Template.Name, to: w.version.Template.Name})
	} else if w.hasTemplate && f == nil && (w.version.Found && have.Template.ID != w.version.Template.ID || !w.version.Found) {
		to := w.version.Ref.Name
		if to == have.Template.Name {
			to += ", made anew"
		}
		differ("awsLaunchTemplate.name", have.Template.Name, to)
	}
	if types := w.instanceTypes(); len(types) > 0 && !slices.Equal(have.InstanceTypes, types) {
		if len(n.InstanceTypes) > 0 {
			out = append(out, immutable{field: "nodegroup.instanceTypes", path: intent.Path{"spec", "nodegroup", "instanceTypes"}, object: w.pool.Options, from: strings.Join(have.InstanceTypes, ", "), to: strings.Join(types, ", ")})
		} else {
			differ("instanceType", strings.Join(have.InstanceTypes, ", "), strings.Join(types, ", "))
		}
	}
	if w.version.Foreign && !w.hasImage && have.AMIType == template.CustomImage {
		differ("amiType", have.AMIType, cmp.Or(n.AMIType, "an image of EKS"))
	}
	if w.hasImage && have.AMIType != "" && have.AMIType != template.CustomImage {
		differ("amiType", have.AMIType, template.CustomImage)
	}
	if w.hasTemplate {
		return out
	}
	if from, to := accessText(have.RemoteAccess), accessText(w.access); from != to {
		differ("remoteAccess", from, to)
	}
	if n.DiskSize != 0 && have.DiskSize != n.DiskSize {
		differ("diskSize", strconv.Itoa(int(have.DiskSize)), strconv.Itoa(int(n.DiskSize)))
	}
	return out
}

// immutableReason says in a few words why a nodegroup is replaced.
func immutableReason(differs []immutable) string {
	fields := make([]string, 0, len(differs))
	for _, d := range differs {
		if !slices.Contains(fields, d.field) {
			fields = append(fields, d.field)
		}
	}
	return "EKS cannot change in place: " + strings.Join(fields, ", ")
}

// accessText says who may log in; EKS shows an empty block where access is off.
func accessText(a *intent.RemoteAccess) string {
	if a == nil || a.EC2SSHKey == "" {
		return ""
	}
	return "key " + a.EC2SSHKey + " from " + strings.Join(slices.Compact(slices.Sorted(slices.Values(a.SourceSecurityGroups))), ", ")
}
