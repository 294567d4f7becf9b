package ec2

import (
	"cmp"
	"encoding/base64"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// maxUserData is the maximum size of user data before encoding, in bytes.
const maxUserData = 16384

// checkTemplateData applies EC2's rules to a version's data, as far as they do not depend on other
// resources.
func checkTemplateData(d wire.Data) *wire.Error {
	for _, check := range []func(wire.Data) *wire.Error{
		checkUserData, checkImageReference, checkInstanceChoice, checkInterfaces, checkVolumes,
		checkMarket, checkTagSpecifications, checkInstanceOptions, CheckRequirements,
	} {
		if err := check(d); err != nil {
			return err
		}
	}
	return nil
}

func checkUserData(d wire.Data) *wire.Error {
	text := d.Text("UserData")
	if text == "" {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return wire.Fail("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(raw) > maxUserData {
		return wire.Fail("InvalidParameterValue", "User data is limited to %d bytes", maxUserData)
	}
	return nil
}

func checkImageReference(d wire.Data) *wire.Error {
	id := d.Text("ImageId")
	if id == "" || strings.HasPrefix(id, "resolve:ssm:") || validID(id, "ami-") {
		return nil
	}
	return wire.Fail("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
}

func checkInstanceChoice(d wire.Data) *wire.Error {
	if d.Has("InstanceType") && d.Has("InstanceRequirements") {
		return wire.Fail("InvalidParameterCombination", "You can't specify both InstanceType and InstanceRequirements in a launch template.")
	}
	profile := d.Sub("IamInstanceProfile")
	if profile.Has("Arn") && profile.Has("Name") {
		return wire.Fail("InvalidParameterCombination", "The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'")
	}
	for _, id := range d.Texts("SecurityGroupIds") {
		if !validID(id, "sg-") {
			return malformedID("InvalidGroupId.Malformed", id, "sg-")
		}
	}
	return nil
}

func malformedID(code, id, prefix string) *wire.Error {
	return wire.Fail(code, "Invalid id: \"%s\" (expecting \"%s...\")", id, prefix)
}

func checkInterfaces(d wire.Data) *wire.Error {
	interfaces := d.List("NetworkInterfaces")
	if len(interfaces) > 0 && (d.Has("SecurityGroupIds") || d.Has("SecurityGroups")) {
		return wire.Fail("InvalidParameterCombination", "Network interfaces and an instance-level security groups may not be specified on the same request")
	}
	for _, ni := range interfaces {
		if id := ni.Text("SubnetId"); id != "" && !validID(id, "subnet-") {
			return malformedID("InvalidSubnetID.Malformed", id, "subnet-")
		}
		for _, id := range ni.Texts("Groups") {
			if !validID(id, "sg-") {
				return malformedID("InvalidGroupId.Malformed", id, "sg-")
			}
		}
	}
	return nil
}

// volumeRule contains the limits of a volume type. A zero maximum means that the parameter is not allowed.
type volumeRule struct {
	lowGiB, highGiB   int64
	lowIOPS, highIOPS int64
	perGiB            int64 // IOPS for each GiB
	iopsRequired      bool
}

func volumeRuleOf(kind string) volumeRule {
	switch kind {
	case "gp3":
		return volumeRule{lowGiB: 1, highGiB: 65536, lowIOPS: 3000, highIOPS: 80000, perGiB: 500}
	case "io1":
		return volumeRule{lowGiB: 4, highGiB: 16384, lowIOPS: 100, highIOPS: 64000, perGiB: 50, iopsRequired: true}
	case "io2":
		return volumeRule{lowGiB: 4, highGiB: 65536, lowIOPS: 100, highIOPS: 256000, perGiB: 1000, iopsRequired: true}
	case "st1", "sc1":
		return volumeRule{lowGiB: 125, highGiB: 16384}
	case "standard":
		return volumeRule{lowGiB: 1, highGiB: 1024}
	}
	return volumeRule{lowGiB: 1, highGiB: 16384} // gp2
}

func checkVolumes(d wire.Data) *wire.Error {
	seen := map[string]bool{}
	for _, m := range d.List("BlockDeviceMappings") {
		name := m.Text("DeviceName")
		if name == "" {
			return wire.Fail("MissingParameter", "The request must contain the parameter deviceName")
		}
		if seen[name] {
			return wire.Fail("InvalidBlockDeviceMapping", "The device '%s' is used in more than one block-device mapping", name)
		}
		seen[name] = true
		if !m.Has("Ebs") {
			continue
		}
		if m.Has("NoDevice") || m.Has("VirtualName") {
			return wire.Fail("InvalidBlockDeviceMapping", "The block device mapping of '%s' must name one of a volume, a virtual device and no device", name)
		}
		if err := checkVolume(m.Sub("Ebs")); err != nil {
			return err
		}
	}
	return nil
}

func checkVolume(v wire.Data) *wire.Error {
	kind := v.Text("VolumeType")
	rule := volumeRuleOf(kind)
	size, iops, throughput := v.Integer("VolumeSize"), v.Integer("Iops"), v.Integer("Throughput")
	switch {
	case v.Has("VolumeSize") && (size < rule.lowGiB || size > rule.highGiB):
		return wire.Fail("InvalidParameterValue", "Volume of %dGiB is invalid for type %s: the size must be from %d to %d GiB", size, cmp.Or(kind, "gp2"), rule.lowGiB, rule.highGiB)
	case rule.iopsRequired && !v.Has("Iops"):
		return wire.Fail("MissingParameter", "The parameter iops must be specified for %s volumes.", kind)
	case v.Has("Iops") && kind != "" && rule.highIOPS == 0:
		return wire.Fail("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", kind)
	case v.Has("Iops") && kind != "" && (iops < rule.lowIOPS || iops > rule.highIOPS):
		return wire.Fail("InvalidParameterValue", "Volume iops of %d is out of range: from %d to %d for %s volumes", iops, rule.lowIOPS, rule.highIOPS, kind)
	case v.Has("Iops") && v.Has("VolumeSize") && rule.perGiB > 0 && iops > max(size*rule.perGiB, rule.lowIOPS):
		return wire.Fail("InvalidParameterValue", "Iops to volume size ratio of %d is too high; maximum is %d", iops/size, rule.perGiB)
	case v.Has("Throughput") && kind != "gp3":
		return wire.Fail("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes.", cmp.Or(kind, "gp2"))
	case v.Has("Throughput") && (throughput < 125 || throughput > 2000):
		return wire.Fail("InvalidParameterValue", "Throughput (MiBps) of %d is out of range: from 125 to 2000", throughput)
	case v.Has("Throughput") && throughput > 125 && throughput*4 > max(iops, 3000):
		return wire.Fail("InvalidParameterValue", "Throughput (MiBps) to iops ratio of %.3f is too high; maximum is 0.25 MiBps per iops", float64(throughput)/float64(max(iops, 3000)))
	case v.Has("KmsKeyId") && v.Text("Encrypted") != "true":
		return wire.Fail("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set.")
	case v.Has("SnapshotId") && !validID(v.Text("SnapshotId"), "snap-"):
		return malformedID("InvalidSnapshotID.Malformed", v.Text("SnapshotId"), "snap-")
	}
	return nil
}

func checkMarket(d wire.Data) *wire.Error {
	market := d.Sub("InstanceMarketOptions")
	if !market.Has("SpotOptions") {
		return nil
	}
	if kind := market.Text("MarketType"); kind != "spot" {
		return wire.Fail("InvalidParameterCombination", "SpotOptions cannot be specified with the market type '%s'", kind)
	}
	spot := market.Sub("SpotOptions")
	if price := spot.Text("MaxPrice"); spot.Has("MaxPrice") {
		if n, err := strconv.ParseFloat(price, 64); err != nil || !(n > 0) {
			return wire.Fail("InvalidParameterValue", "Invalid value '%s' for MaxPrice. It must be a positive number.", price)
		}
	}
	if minutes := spot.Integer("BlockDurationMinutes"); spot.Has("BlockDurationMinutes") && (minutes%60 != 0 || minutes < 60 || minutes > 360) {
		return wire.Fail("InvalidParameterValue", "Invalid value '%d' for BlockDurationMinutes", minutes)
	}
	if spot.Text("SpotInstanceType") != "persistent" && slices.Contains([]string{"stop", "hibernate"}, spot.Text("InstanceInterruptionBehavior")) {
		return wire.Fail("InvalidParameterCombination", "The interruption behavior '%s' requires a persistent Spot request", spot.Text("InstanceInterruptionBehavior"))
	}
	return nil
}

func checkTagSpecifications(d wire.Data) *wire.Error {
	seen := map[string]bool{}
	for _, spec := range d.List("TagSpecifications") {
		kind := spec.Text("ResourceType")
		if !slices.Contains([]string{"instance", "volume", "network-interface", "spot-instances-request", "elastic-gpu"}, kind) {
			return wire.Fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
		if seen[kind] {
			return wire.Fail("InvalidParameterValue", "Tag specification resource type '%s' is given more than once", kind)
		}
		seen[kind] = true
		keys := map[string]bool{}
		for _, t := range spec.List("Tags") {
			if fault := world.TagFault(t.Text("Key"), t.Text("Value")); fault != "" {
				return wire.Fail("InvalidParameterValue", "Tag %s is not valid: %s", t.Text("Key"), fault)
			}
			if keys[t.Text("Key")] {
				return wire.Fail("InvalidParameterValue", "Duplicate tag key '%s' specified.", t.Text("Key"))
			}
			keys[t.Text("Key")] = true
		}
		if len(keys) > 50 {
			return wire.Fail("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
		}
	}
	return nil
}

func checkInstanceOptions(d wire.Data) *wire.Error {
	metadata := d.Sub("MetadataOptions")
	if n := metadata.Integer("HttpPutResponseHopLimit"); metadata.Has("HttpPutResponseHopLimit") && (n < 1 || n > 64) {
		return wire.Fail("InvalidParameterValue", "Invalid value '%d' for HttpPutResponseHopLimit. Expecting value between 1 and 64.", n)
	}
	if credits := d.Sub("CreditSpecification").Text("CpuCredits"); credits != "" && credits != "standard" && credits != "unlimited" {
		return wire.Fail("InvalidParameterValue", "Invalid value '%s' for CpuCredits.", credits)
	}
	if d.Sub("EnclaveOptions").Text("Enabled") == "true" && d.Sub("HibernationOptions").Text("Configured") == "true" {
		return wire.Fail("InvalidParameterCombination", "You can't enable AWS Nitro Enclaves and hibernation on the same instance.")
	}
	reservation := d.Sub("CapacityReservationSpecification")
	if target := reservation.Sub("CapacityReservationTarget"); target.Has("CapacityReservationId") && target.Has("CapacityReservationResourceGroupArn") {
		return wire.Fail("InvalidParameterCombination", "Only one of CapacityReservationId and CapacityReservationResourceGroupArn may be specified")
	}
	return nil
}

func CheckRequirements(d wire.Data) *wire.Error {
	req := d.Sub("InstanceRequirements")
	if req.Has("AllowedInstanceTypes") && req.Has("ExcludedInstanceTypes") {
		return wire.Fail("InvalidParameterCombination", "AllowedInstanceTypes and ExcludedInstanceTypes cannot both be specified")
	}
	names := make([]string, 0, len(req))
	for name := range req {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		low, lowErr := strconv.ParseFloat(req.Sub(name).Text("Min"), 64)
		high, highErr := strconv.ParseFloat(req.Sub(name).Text("Max"), 64)
		if lowErr == nil && highErr == nil && low > high {
			return wire.Fail("InvalidParameterValue", "The minimum of %s is greater than its maximum", name)
		}
	}
	return nil
}
