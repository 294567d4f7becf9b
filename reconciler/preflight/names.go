package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// unknown records a name that AWS does not know, with the message of a refused write.
func (v *verdict) unknown(l *launch, kind, name string) {
	u := observed.UnknownName{Kind: kind, Name: name}
	object, path := u.Field(l.pool)
	v.findings.warn(codeUnknown, object, path, "AWS knows no "+u.String(), "")
	v.noMachine(l, "AWS knows no "+u.String())
}

// names checks the names in a launch: the instance profile, key pairs and security groups.
func (v *verdict) names(l *launch) {
	if name := profileName(l.data.IamInstanceProfile); name != "" {
		p, ok, absent := know(v, v.facts.profiles, name)
		switch {
		case absent:
			v.unknown(l, observed.UnknownProfile, name)
		case ok && p.Role == "":
			v.facts.profiles.condemn(name)
			v.noMachine(l, "the instance profile "+name+" has no role")
			v.refused(l, "IamInstanceProfile.Name", "the instance profile "+name+" has no role, so AWS launches no machine with it",
				"add a role to it: aws iam add-role-to-instance-profile --instance-profile-name "+name+" --role-name ROLE")
		}
	}
	names := []string{l.data.KeyName}
	if n := l.pool.Nodegroup; n != nil && n.RemoteAccess != nil {
		names = append(names, n.RemoteAccess.EC2SSHKey)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		if _, _, absent := know(v, v.facts.keyPairs, name); absent {
			v.unknown(l, observed.UnknownKey, name)
		}
	}
	for _, id := range groupsOf(l) {
		if _, _, absent := know(v, v.facts.groups, id); absent {
			v.unknown(l, observed.UnknownGroup, id)
		}
	}
}

// profileName returns the name from an instance profile's name or ARN.
func profileName(p *intent.InstanceProfile) string {
	if p == nil {
		return ""
	}
	if p.Name != "" {
		return p.Name
	}
	return p.ARN[strings.LastIndex(p.ARN, "/")+1:]
}

// groupsOf returns the security groups that manifests name by id. Groups found by a lookup exist.
func groupsOf(l *launch) []string {
	var out []string
	if n := l.pool.Nodegroup; n != nil && n.RemoteAccess != nil {
		out = append(out, n.RemoteAccess.SourceSecurityGroups...)
	}
	if t := l.pool.LaunchTemplate; t != nil {
		out = append(out, t.Data.SecurityGroupIDs...)
		for _, n := range t.Data.NetworkInterfaces {
			out = append(out, n.Groups...)
		}
	}
	if l.pool.ForeignTemplate != nil {
		out = append(out, l.data.SecurityGroupIDs...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// keys checks the KMS keys of volumes.
func (v *verdict) keys(l *launch) {
	for i, m := range l.data.BlockDeviceMappings {
		id := m.Ebs.KmsKeyID
		if id == "" {
			continue
		}
		member := fmt.Sprintf("BlockDeviceMappings[%d].Ebs.KmsKeyId", i)
		k, ok, absent := know(v, v.facts.keys, id)
		switch {
		case absent:
			v.noMachine(l, "there is no KMS key "+id)
			v.refused(l, member, "there is no KMS key "+id+", so AWS launches no machine with the volume", "correct it; name a key of another account by its ARN")
		case ok && k.State != "Enabled":
			v.facts.keys.condemn(id)
			v.noMachine(l, "the KMS key "+id+" is "+k.State)
			v.refused(l, member, "the KMS key "+id+" is "+k.State+", so AWS launches no machine with the volume", "enable the key (aws kms enable-key, or cancel-key-deletion before), or name another")
		case ok && !k.Symmetric:
			v.facts.keys.condemn(id)
			v.noMachine(l, "the KMS key "+id+" is not a symmetric key that encrypts")
			v.refused(l, member, "the KMS key "+id+" is not a symmetric key that encrypts, which volumes need", "name another key")
		}
	}
}

// image checks the image against the other settings. The planner has already compared it with the first
// instance type.
func (v *verdict) image(l *launch) {
	v.rootVolume(l)
	seen := map[string]bool{}
	for i, m := range l.data.BlockDeviceMappings {
		if m.DeviceName == "" {
			continue
		}
		if seen[m.DeviceName] {
			member := fmt.Sprintf("BlockDeviceMappings[%d].DeviceName", i)
			what := ""
			if l.image != nil && l.image.RootDevice == m.DeviceName {
				what = ", the root device of the image " + l.image.ID
			}
			object, path := fieldOf(l.pool, member)
			v.findings.fail(codeRefused, object, path, "two volumes have the device name "+m.DeviceName+what, "give the volume another device name")
		}
		seen[m.DeviceName] = true
	}
}

// rootVolume compares the size of the root volume with the image's snapshot, as EC2 does. The size in the
// image is only a default: EKS images of Amazon Linux 2 say 20 GiB and have a snapshot of 4 GiB. An account
// may be unable to see the snapshot of an image that it may launch. The size is then unknown.
func (v *verdict) rootVolume(l *launch) {
	im := l.image
	if im == nil || im.RootDevice == "" || im.RootSnapshot == "" {
		return
	}
	i := slices.IndexFunc(l.data.BlockDeviceMappings, func(m intent.BlockDeviceMapping) bool { return m.DeviceName == im.RootDevice })
	if i < 0 {
		return
	}
	size := l.data.BlockDeviceMappings[i].Ebs.VolumeSize
	if size == 0 || size >= im.RootSize {
		return
	}
	object, path := fieldOf(l.pool, fmt.Sprintf("BlockDeviceMappings[%d].Ebs.VolumeSize", i))
	least, ok, absent := know(v, v.facts.snapshots, im.RootSnapshot)
	switch {
	case absent:
		v.findings.warn(codeSmallUnknown, object, path, fmt.Sprintf("the root volume of %d GiB is smaller than the %d GiB that the image %s has by default; the account may not see the size of its snapshot", size, im.RootSize, im.ID), "")
	case ok && size < least:
		why := fmt.Sprintf("the root volume of %d GiB is smaller than the image's snapshot of %d GiB", size, least)
		v.findings.fail(codeSmall, object, path, why, fmt.Sprintf("write a size of at least %d", least))
		v.noMachine(l, why)
	}
}

// placement checks placement groups.
func (v *verdict) placement(l *launch) {
	if p := l.data.Placement; p != nil {
		name := p.GroupName
		member := "Placement.GroupName"
		if name == "" {
			name, member = p.GroupID, "Placement.GroupId"
		}
		object, path := fieldOf(l.pool, member)
		v.placementGroup(l, place{name, object, path}, p.PartitionNumber)
	}
	if g := l.pool.Group; g != nil {
		v.placementGroup(l, place{g.Options.PlacementGroup, l.pool.Options, intent.Path{"spec", "autoScalingGroup", "placementGroup"}}, 0)
	}
}

// placementGroup checks that the placement group exists, and that it fits the launch. partition is 0 if the
// launch names none.
func (v *verdict) placementGroup(l *launch, at place, partition int32) {
	name := at.value
	if name == "" {
		return
	}
	g, ok, absent := know(v, v.facts.placements, name)
	if absent {
		v.findings.warn(codeUnknown, at.object, at.path, "AWS knows no placement group "+name, "")
		v.noMachine(l, "AWS knows no placement group "+name)
	}
	if !ok {
		return
	}
	say := func(summary, detail string) {
		v.facts.placements.doubt(name)
		v.findings.warn(codeRefused, at.object, at.path, summary, detail)
	}
	switch {
	case g.State != "" && g.State != "available":
		say("the placement group "+name+" is "+g.State, "wait until it is available, or name another")
	case partition > 0 && g.Strategy != "partition":
		say(fmt.Sprintf("the placement group %s has the strategy %s and no partition %d", name, g.Strategy, partition), "remove partitionNumber, or name a group of the strategy partition")
	case g.Strategy == "partition" && partition > g.Partitions:
		say(fmt.Sprintf("the placement group %s has %d partitions and no partition %d", name, g.Partitions, partition), "write the number of one that it has")
	}
	zones := v.zones(l)
	switch {
	case g.Strategy == "cluster" && len(zones) > 1:
		say("the placement group "+name+" is in one zone, as its strategy is cluster, and the pool's subnets are in "+strings.Join(zones, ", "), "name subnets of one zone")
	case g.Strategy == "spread" && len(zones) > 0 && l.more > int64(perZone*len(zones)):
		say(fmt.Sprintf("the placement group %s takes %d machines in a zone, as its strategy is spread, and the pool wants %d in %s", name, perZone, l.more, strings.Join(zones, ", ")), "name subnets of further zones, or another group")
	}
	for _, t := range l.types {
		info, ok, _ := know(v, v.facts.types, t.value)
		if ok && len(info.Strategies) > 0 && g.Strategy != "" && !slices.Contains(info.Strategies, g.Strategy) {
			say("machines of the type "+t.value+" cannot be in the placement group "+name+", whose strategy is "+g.Strategy, "name another type or group")
		}
	}
}

// perZone is the number of machines per zone in a placement group with the strategy spread
// ("Placement groups" in the EC2 user guide).
const perZone = 7

// zones returns the known zones of the launch's subnets, sorted.
func (v *verdict) zones(l *launch) (out []string) {
	for _, id := range l.subnets {
		if s, ok, _ := know(v, v.facts.subnets, id); ok {
			out = append(out, s.Zone)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
