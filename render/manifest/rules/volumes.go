package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// volumeLimits are the limits of a volume type. If maxIOPS is zero, the type does not support iops.
type volumeLimits struct {
	minGiB, maxGiB   int64
	minIOPS, maxIOPS int64
	// iopsPerGiB limits iops by size. baseIOPS is always allowed.
	iopsPerGiB, baseIOPS int64
	// boots is true if a root volume may have the type.
	boots bool
}

// limitsOfVolumes has the limits of EC2's volume types. Sources: VolumeType, VolumeSize, Iops and Throughput
// of LaunchTemplateEbsBlockDeviceRequest in the API reference of EC2. "Amazon EBS volume types" in the user
// guide of EBS has the ratios and the types that can boot.
var limitsOfVolumes = map[string]volumeLimits{
	"gp2":      {minGiB: 1, maxGiB: 16384, boots: true},
	"gp3":      {minGiB: 1, maxGiB: 65536, minIOPS: 3000, maxIOPS: 80000, iopsPerGiB: 500, baseIOPS: 3000, boots: true},
	"io1":      {minGiB: 4, maxGiB: 16384, minIOPS: 100, maxIOPS: 64000, iopsPerGiB: 50, baseIOPS: 100, boots: true},
	"io2":      {minGiB: 4, maxGiB: 65536, minIOPS: 100, maxIOPS: 256000, iopsPerGiB: 1000, baseIOPS: 100, boots: true},
	"st1":      {minGiB: 125, maxGiB: 16384},
	"sc1":      {minGiB: 125, maxGiB: 16384},
	"standard": {minGiB: 1, maxGiB: 1024, boots: true},
}

// Throughput of a gp3 volume in MiB/s, from the same sources. Every 4 iops allow 1 MiB/s.
const (
	minThroughput, maxThroughput = 125, 2000
	iopsPerThroughput            = 4
)

// checkVolumes checks the volumes of a launch template. For a managed pool, EC2 and EKS apply the same rules.
func checkVolumes(r kinds.Reporter, p intent.Path, lt *kinds.LaunchTemplate) {
	if lt.RootVolume != nil {
		at := p.Join("rootVolume")
		checkVolume(r, at, lt.RootVolume)
		if t := lt.RootVolume.Type; limitsOfVolumes[t].maxGiB > 0 && !limitsOfVolumes[t].boots {
			r.Error(at.Join("type"), "not-allowed", fmt.Sprintf("%s is %s, and no machine boots from such a volume", at.Join("type"), t), "write gp3, and use "+t+" in nonRootVolumes")
		}
	}
	seen := map[string]bool{}
	for i := range lt.NonRootVolumes {
		at, v := p.Join("nonRootVolumes", intent.Index(i)), &lt.NonRootVolumes[i]
		checkVolume(r, at, v)
		if v.DeviceName == "" {
			r.Error(at.Join("deviceName"), "missing-required", at.Join("deviceName").String()+" is required", "name the device, such as /dev/sdb")
		} else if seen[v.DeviceName] {
			r.Error(at.Join("deviceName"), "duplicate", fmt.Sprintf("device %q is written twice", v.DeviceName), "")
		}
		seen[v.DeviceName] = true
	}
}

// checkVolume checks a volume against the limits of its type. If it has no type, the image or EC2 chooses
// one.
func checkVolume(r kinds.Reporter, p intent.Path, v *kinds.Volume) {
	checkEncryption(r, p, v)
	limits, known := limitsOfVolumes[v.Type]
	if v.Type != "" && !known {
		r.Error(p.Join("type"), "bad-enum", fmt.Sprintf("%s cannot be %q", p.Join("type"), v.Type), "it must be "+kinds.OneOf(slices.Sorted(maps.Keys(limitsOfVolumes))))
		return
	}
	if at := p.Join("size"); known && v.Size > 0 && (v.Size < limits.minGiB || v.Size > limits.maxGiB) {
		r.Error(at, "out-of-range", fmt.Sprintf("%s is %d; a volume of type %s has %d to %d GiB", at, v.Size, v.Type, limits.minGiB, limits.maxGiB), "")
	}
	checkIOPS(r, p, v)
	checkThroughput(r, p, v)
}

// checkIOPS checks the iops of a volume by the limits of EC2 for its type and size. Zero means that iops is
// not set.
func checkIOPS(r kinds.Reporter, p intent.Path, v *kinds.Volume) {
	at, limits := p.Join("iops"), limitsOfVolumes[v.Type]
	switch most := max(v.Size*limits.iopsPerGiB, limits.baseIOPS); {
	case v.IOPS == 0 && (v.Type == "io1" || v.Type == "io2"):
		r.Error(at, "missing-required", fmt.Sprintf("%s is required for volume type %s", at, v.Type), "")
	case v.IOPS == 0:
	case v.Type == "":
		r.Warn(at, "incomplete", at.String()+" is written without a type, and EC2 takes iops for gp3, io1 and io2 only", "write type: gp3 beside it")
	case limits.maxIOPS == 0:
		r.Error(at, "exclusive", fmt.Sprintf("%s is not allowed for volume type %s", at, v.Type), "write type gp3, io1 or io2, or remove iops")
	case v.IOPS < limits.minIOPS || v.IOPS > limits.maxIOPS:
		r.Error(at, "out-of-range", fmt.Sprintf("%s is %d; a volume of type %s takes %d to %d", at, v.IOPS, v.Type, limits.minIOPS, limits.maxIOPS), "")
	case v.Size > 0 && v.IOPS > most:
		r.Error(at, "out-of-range", fmt.Sprintf("%s is %d; a volume of type %s with %d GiB takes at most %d", at, v.IOPS, v.Type, v.Size, most),
			fmt.Sprintf("EC2 takes %d iops for each GiB: write fewer, or a larger size", limits.iopsPerGiB))
	}
}

// checkThroughput checks the throughput of a volume by the limits of EC2. Only gp3 volumes have one.
func checkThroughput(r kinds.Reporter, p intent.Path, v *kinds.Volume) {
	if v.Throughput == nil {
		return
	}
	at, n := p.Join("throughput"), *v.Throughput
	switch most := max(v.IOPS, limitsOfVolumes["gp3"].baseIOPS) / iopsPerThroughput; {
	case v.Type != "gp3":
		r.Error(at, "exclusive", at.String()+" is for volume type gp3 only", "")
	case n < minThroughput || n > maxThroughput:
		r.Error(at, "out-of-range", fmt.Sprintf("%s is %d, must be %d to %d", at, n, minThroughput, maxThroughput), "")
	case n > most:
		r.Error(at, "out-of-range", fmt.Sprintf("%s is %d; with %d iops it can be at most %d", at, n, max(v.IOPS, limitsOfVolumes["gp3"].baseIOPS), most),
			fmt.Sprintf("write iops: %d or more, or less throughput: EC2 takes 1 MiB/s for every %d iops", n*iopsPerThroughput, iopsPerThroughput))
	}
}

// keyID and keyARN match KMS keys. A key may be regional or multi-regional. KmsKeyId of
// LaunchTemplateEbsBlockDeviceRequest in EC2's API reference accepts an id, an alias, or the ARN of either.
var (
	keyID  = lazyregexp.New(`^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})$`)
	keyARN = lazyregexp.New(`^arn:[^:]+:kms:[^:]+:[0-9]{12}:(key|alias)/.+$`)
)

func checkEncryption(r kinds.Reporter, p intent.Path, v *kinds.Volume) {
	if v.EncryptionKey == "" {
		return
	}
	at := p.Join("encryptionKey")
	if alias, ok := strings.CutPrefix(v.EncryptionKey, "alias/"); !keyID.MatchString(v.EncryptionKey) && !keyARN.MatchString(v.EncryptionKey) && (!ok || alias == "") {
		r.Error(at, "bad-id", at.String()+" names no KMS key", "write the key's id, its ARN, alias/NAME or the ARN of an alias")
	}
	if v.Encrypted != nil && !*v.Encrypted {
		r.Error(p.Join("encrypted"), "exclusive", p.Join("encrypted").String()+" false excludes encryptionKey", "write encrypted: true, or remove the key")
	}
}
