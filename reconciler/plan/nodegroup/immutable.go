package nodegroup

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/render/intent"
)

// immutable is a field of a nodegroup that differs and that EKS cannot change in place: it is
// missing in UpdateNodegroupConfig and UpdateNodegroupVersion.
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
	d := &differences{w: w, n: w.pool.Nodegroup}
	d.placement(have)
	if (have.Template.ID != "") != w.hasTemplate {
		d.field(true, "awsLaunchTemplate", have.Template.Name, w.version.Ref.Name)
		return d.found
	}
	d.template(have)
	d.machines(have)
	if !w.hasTemplate {
		d.field(accessText(have.RemoteAccess) != accessText(w.access), "remoteAccess", accessText(have.RemoteAccess), accessText(w.access))
		d.field(d.n.DiskSize != 0 && have.DiskSize != d.n.DiskSize, "diskSize", strconv.Itoa(int(have.DiskSize)), strconv.Itoa(int(d.n.DiskSize)))
	}
	return d.found
}

// differences collects the fields of a nodegroup that differ.
type differences struct {
	w     wantNodegroup
	n     *intent.Nodegroup
	found []immutable
}

// field adds a field of the infrastructure object if it differs.
func (d *differences) field(differs bool, field, from, to string) {
	if differs {
		path := intent.Path{"spec"}.Join(model.FieldPath(field)...)
		d.found = append(d.found, immutable{field: field, path: path, object: d.w.pool.Infrastructure, from: from, to: to})
	}
}

// placement compares the subnets, the capacity type, the role and the AMI type of the machines.
func (d *differences) placement(have observed.Nodegroup) {
	subnets := d.w.writtenSubnets()
	d.field(len(subnets) > 0 && !slices.Equal(have.SubnetIDs, subnets), "subnetIDs", strings.Join(have.SubnetIDs, ", "), strings.Join(subnets, ", "))
	d.field(have.CapacityType != d.n.CapacityType, "capacityType", have.CapacityType, d.n.CapacityType)
	d.field(have.NodeRole != d.w.role, "roleName", have.NodeRole, d.w.role)
	d.field(!d.w.hasImage && d.n.AMIType != "" && have.AMIType != d.n.AMIType, "amiType", have.AMIType, d.n.AMIType)
}

// template adds a difference if the nodegroup uses another launch template than Git wants. It compares
// ids, because a template that was deleted and created again has the same name. Another version of
// the same template is no difference here, as EKS can change it in place.
func (d *differences) template(have observed.Nodegroup) {
	sameID := d.w.version.Found && have.Template.ID == d.w.version.Template.ID
	if f := d.w.pool.ForeignTemplate; f != nil && have.Template.ID != d.w.version.Template.ID {
		d.found = append(d.found, immutable{field: "launch template", path: f.NameField, object: d.w.pool.Infrastructure, from: have.Template.Name, to: d.w.version.Template.Name})
	} else if d.w.hasTemplate && f == nil && !sameID {
		to := d.w.version.Ref.Name
		if to == have.Template.Name {
			to += ", made anew"
		}
		d.field(true, "awsLaunchTemplate.name", have.Template.Name, to)
	}
}

// machines compares the types of the machines, and the source of their image.
func (d *differences) machines(have observed.Nodegroup) {
	types := d.w.instanceTypes()
	differ, from, to := len(types) > 0 && !slices.Equal(have.InstanceTypes, types), strings.Join(have.InstanceTypes, ", "), strings.Join(types, ", ")
	if differ && len(d.n.InstanceTypes) > 0 {
		d.found = append(d.found, immutable{field: "nodegroup.instanceTypes", path: intent.Path{"spec", "nodegroup", "instanceTypes"}, object: d.w.pool.Options, from: from, to: to})
	} else {
		d.field(differ, "instanceType", from, to)
	}
	custom := have.AMIType == template.CustomImage
	d.field(d.w.version.Foreign && !d.w.hasImage && custom, "amiType", have.AMIType, cmp.Or(d.n.AMIType, "an image of EKS"))
	d.field(d.w.hasImage && have.AMIType != "" && !custom, "amiType", have.AMIType, template.CustomImage)
}

// immutableReason describes briefly why a nodegroup is replaced.
func immutableReason(differs []immutable) string {
	fields := make([]string, 0, len(differs))
	for _, d := range differs {
		if !slices.Contains(fields, d.field) {
			fields = append(fields, d.field)
		}
	}
	return "EKS cannot change in place: " + strings.Join(fields, ", ")
}

// accessText describes the remote access. EKS returns an empty block if access is off.
func accessText(a *intent.RemoteAccess) string {
	if a == nil || a.EC2SSHKey == "" {
		return ""
	}
	return "key " + a.EC2SSHKey + " from " + strings.Join(slices.Compact(slices.Sorted(slices.Values(a.SourceSecurityGroups))), ", ")
}
