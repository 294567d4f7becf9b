package awsemu

import (
	"encoding/base64"
	"sort"
	"strconv"
	"strings"
)

// maxUserData is the size of user data before it is encoded, in bytes.
const maxUserData = 16384

// checkTemplateData applies EC2's rules to a version's body, as far as they can
// be seen without looking at other resources.
func checkTemplateData(d ltData) *apiError {
	for _, check := range []func(ltData) *apiError{
		checkUserData, checkImageReference, checkInstanceChoice, checkInterfaces, checkVolumes,
		checkMarket, checkTagSpecifications, checkInstanceOptions, checkRequirements,
	} {
		if err := check(d); err != nil {
			return err
		}
	}
	return nil
}

func checkUserData(d ltData) *apiError {
	text := d.text("UserData")
	if text == "" {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return fail("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(raw) > maxUserData {
		return fail("InvalidParameterValue", "User data is limited to %d bytes", maxUserData)
	}
	return nil
}

func checkImageReference(d ltData) *apiError {
	id := d.text("ImageId")
	if id == "" || strings.HasPrefix(id, "resolve:ssm:") || validID(id, "ami-") {
		return nil
	}
	return fail("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
}

func checkInstanceChoice(d ltData) *apiError {
	if d.has("InstanceType") && d.has("InstanceRequirements") {
		return fail("InvalidParameterCombination", "You can't specify both InstanceType and InstanceRequirements in a launch template.")
	}
	profile := d.sub("IamInstanceProfile")
	if profile.has("Arn") && profile.has("Name") {
		return fail("InvalidParameterCombination", "The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'")
	}
	for _, id := range d.texts("SecurityGroupIds") {
		if !validID(id, "sg-") {
			return malformedID("InvalidGroupId.Malformed", id, "sg-")
		}
	}
	return nil
}

func malformedID(code, id, prefix string) *apiError {
	return fail(code, "Invalid id: \"%s\" (expecting \"%s...\")", id, prefix)
}

func checkInterfaces(d ltData) *apiError {
	interfaces := d.list("NetworkInterfaces")
	if len(interfaces) > 0 && (d.has("SecurityGroupIds") || d.has("SecurityGroups")) {
		return fail("InvalidParameterCombination", "Network interfaces and an instance-level security groups may not be specified on the same request")
	}
	for _, ni := range interfaces {
		if id := ni.text("SubnetId"); id != "" && !validID(id, "subnet-") {
			return malformedID("InvalidSubnetID.Malformed", id, "subnet-")
		}
		for _, id := range ni.texts("Groups") {
			if !validID(id, "sg-") {
				return malformedID("InvalidGroupId.Malformed", id, "sg-")
			}
		}
	}
	return nil
}

// volumeRule are a volume type's limits; a zero highest says that the parameter
// is not allowed.
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

func checkVolumes(d ltData) *apiError {
	seen := map[string]bool{}
	for _, m := range d.list("BlockDeviceMappings") {
		name := m.text("DeviceName")
		if name == "" {
			return fail("MissingParameter", "The request must contain the parameter deviceName")
		}
		if seen[name] {
			return fail("InvalidBlockDeviceMapping", "The device '%s' is used in more than one block-device mapping", name)
		}
		seen[name] = true
		if !m.has("Ebs") {
			continue
		}
		if m.has("NoDevice") || m.has("VirtualName") {
			return fail("InvalidBlockDeviceMapping", "The block device mapping of '%s' must name one of a volume, a virtual device and no device", name)
		}
		if err := checkVolume(m.sub("Ebs")); err != nil {
			return err
		}
	}
	return nil
}

func checkVolume(v ltData) *apiError {
	kind := v.text("VolumeType")
	rule := volumeRuleOf(kind)
	size, iops, throughput := v.integer("VolumeSize"), v.integer("Iops"), v.integer("Throughput")
	switch {
	case v.has("VolumeSize") && (size < rule.lowGiB || size > rule.highGiB):
		return fail("InvalidParameterValue", "Volume of %dGiB is invalid for type %s: the size must be from %d to %d GiB", size, first(kind, "gp2"), rule.lowGiB, rule.highGiB)
	case rule.iopsRequired && !v.has("Iops"):
		return fail("MissingParameter", "The parameter iops must be specified for %s volumes.", kind)
	case v.has("Iops") && kind != "" && rule.highIOPS == 0:
		return fail("InvalidParameterCombination", "The parameter iops is not supported for %s volumes.", kind)
	case v.has("Iops") && kind != "" && (iops < rule.lowIOPS || iops > rule.highIOPS):
		return fail("InvalidParameterValue", "Volume iops of %d is out of range: from %d to %d for %s volumes", iops, rule.lowIOPS, rule.highIOPS, kind)
	case v.has("Iops") && v.has("VolumeSize") && rule.perGiB > 0 && iops > max(size*rule.perGiB, rule.lowIOPS):
		return fail("InvalidParameterValue", "Iops to volume size ratio of %d is too high; maximum is %d", iops/size, rule.perGiB)
	case v.has("Throughput") && kind != "gp3":
		return fail("InvalidParameterCombination", "The parameter throughput is not supported for %s volumes.", first(kind, "gp2"))
	case v.has("Throughput") && (throughput < 125 || throughput > 2000):
		return fail("InvalidParameterValue", "Throughput (MiBps) of %d is out of range: from 125 to 2000", throughput)
	case v.has("Throughput") && throughput > 125 && throughput*4 > max(iops, 3000):
		return fail("InvalidParameterValue", "Throughput (MiBps) to iops ratio of %.3f is too high; maximum is 0.25 MiBps per iops", float64(throughput)/float64(max(iops, 3000)))
	case v.has("KmsKeyId") && v.text("Encrypted") != "true":
		return fail("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set.")
	case v.has("SnapshotId") && !validID(v.text("SnapshotId"), "snap-"):
		return malformedID("InvalidSnapshotID.Malformed", v.text("SnapshotId"), "snap-")
	}
	return nil
}

func checkMarket(d ltData) *apiError {
	market := d.sub("InstanceMarketOptions")
	if !market.has("SpotOptions") {
		return nil
	}
	if kind := market.text("MarketType"); kind != "spot" {
		return fail("InvalidParameterCombination", "SpotOptions cannot be specified with the market type '%s'", kind)
	}
	spot := market.sub("SpotOptions")
	if price := spot.text("MaxPrice"); spot.has("MaxPrice") {
		if n, err := strconv.ParseFloat(price, 64); err != nil || !(n > 0) {
			return fail("InvalidParameterValue", "Invalid value '%s' for MaxPrice. It must be a positive number.", price)
		}
	}
	if minutes := spot.integer("BlockDurationMinutes"); spot.has("BlockDurationMinutes") && (minutes%60 != 0 || minutes < 60 || minutes > 360) {
		return fail("InvalidParameterValue", "Invalid value '%d' for BlockDurationMinutes", minutes)
	}
	if spot.text("SpotInstanceType") != "persistent" && contains([]string{"stop", "hibernate"}, spot.text("InstanceInterruptionBehavior")) {
		return fail("InvalidParameterCombination", "The interruption behavior '%s' requires a persistent Spot request", spot.text("InstanceInterruptionBehavior"))
	}
	return nil
}

func checkTagSpecifications(d ltData) *apiError {
	seen := map[string]bool{}
	for _, spec := range d.list("TagSpecifications") {
		kind := spec.text("ResourceType")
		if !contains([]string{"instance", "volume", "network-interface", "spot-instances-request", "elastic-gpu"}, kind) {
			return fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
		if seen[kind] {
			return fail("InvalidParameterValue", "Tag specification resource type '%s' is given more than once", kind)
		}
		seen[kind] = true
		keys := map[string]bool{}
		for _, t := range spec.list("Tags") {
			if fault := tagFault(t.text("Key"), t.text("Value")); fault != "" {
				return fail("InvalidParameterValue", "Tag %s is not valid: %s", t.text("Key"), fault)
			}
			if keys[t.text("Key")] {
				return fail("InvalidParameterValue", "Duplicate tag key '%s' specified.", t.text("Key"))
			}
			keys[t.text("Key")] = true
		}
		if len(keys) > 50 {
			return fail("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
		}
	}
	return nil
}

func checkInstanceOptions(d ltData) *apiError {
	metadata := d.sub("MetadataOptions")
	if n := metadata.integer("HttpPutResponseHopLimit"); metadata.has("HttpPutResponseHopLimit") && (n < 1 || n > 64) {
		return fail("InvalidParameterValue", "Invalid value '%d' for HttpPutResponseHopLimit. Expecting value between 1 and 64.", n)
	}
	if credits := d.sub("CreditSpecification").text("CpuCredits"); credits != "" && credits != "standard" && credits != "unlimited" {
		return fail("InvalidParameterValue", "Invalid value '%s' for CpuCredits.", credits)
	}
	if d.sub("EnclaveOptions").text("Enabled") == "true" && d.sub("HibernationOptions").text("Configured") == "true" {
		return fail("InvalidParameterCombination", "You can't enable AWS Nitro Enclaves and hibernation on the same instance.")
	}
	reservation := d.sub("CapacityReservationSpecification")
	if target := reservation.sub("CapacityReservationTarget"); target.has("CapacityReservationId") && target.has("CapacityReservationResourceGroupArn") {
		return fail("InvalidParameterCombination", "Only one of CapacityReservationId and CapacityReservationResourceGroupArn may be specified")
	}
	return nil
}

func checkRequirements(d ltData) *apiError {
	req := d.sub("InstanceRequirements")
	if req.has("AllowedInstanceTypes") && req.has("ExcludedInstanceTypes") {
		return fail("InvalidParameterCombination", "AllowedInstanceTypes and ExcludedInstanceTypes cannot both be specified")
	}
	names := make([]string, 0, len(req))
	for name := range req {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		low, lowErr := strconv.ParseFloat(req.sub(name).text("Min"), 64)
		high, highErr := strconv.ParseFloat(req.sub(name).text("Max"), 64)
		if lowErr == nil && highErr == nil && low > high {
			return fail("InvalidParameterValue", "The minimum of %s is greater than its maximum", name)
		}
	}
	return nil
}
