package ec2

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// instanceType contains the emulator's facts about an instance type.
type instanceType struct {
	Arch   string // x86_64 or arm64
	Vcpus  int64
	Memory int64 // MiB
}

// family is a family of instance types whose memory is proportional to the vCPUs.
type family struct {
	name  string
	arch  string
	ratio int64 // MiB for each vCPU
	sizes string
}

// sizeVCPUs returns the vCPUs of the sizes that are the same in every family.
func sizeVCPUs() map[string]int64 {
	return map[string]int64{
		"medium": 1, "large": 2, "xlarge": 4, "2xlarge": 8, "3xlarge": 12, "4xlarge": 16, "6xlarge": 24, "8xlarge": 32,
		"9xlarge": 36, "10xlarge": 40, "12xlarge": 48, "16xlarge": 64, "18xlarge": 72, "24xlarge": 96,
		"32xlarge": 128, "48xlarge": 192,
	}
}

func families() []family {
	const (
		fifth    = "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge"
		fifthC   = "large xlarge 2xlarge 4xlarge 9xlarge 12xlarge 18xlarge 24xlarge"
		sixth    = fifth + " 32xlarge"
		seventh  = fifth + " 48xlarge"
		flex     = "large xlarge 2xlarge 4xlarge 8xlarge"
		graviton = "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"
		eighth   = graviton + " 24xlarge 48xlarge"
		gpu      = "xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"
	)
	return []family{
		{"m4", "x86_64", 4096, "large xlarge 2xlarge 4xlarge 10xlarge 16xlarge"},
		{"m5", "x86_64", 4096, fifth}, {"m5a", "x86_64", 4096, fifth}, {"m5d", "x86_64", 4096, fifth}, {"m5n", "x86_64", 4096, fifth},
		{"m6i", "x86_64", 4096, sixth}, {"m6id", "x86_64", 4096, sixth}, {"m6in", "x86_64", 4096, sixth}, {"m6a", "x86_64", 4096, sixth + " 48xlarge"},
		{"m7i", "x86_64", 4096, seventh}, {"m7a", "x86_64", 4096, "medium " + sixth + " 48xlarge"}, {"m7i-flex", "x86_64", 4096, flex},
		{"c4", "x86_64", 1920, "large xlarge 2xlarge 4xlarge"},
		{"c5", "x86_64", 2048, fifthC}, {"c5d", "x86_64", 2048, fifthC}, {"c5a", "x86_64", 2048, fifth}, {"c5n", "x86_64", 2688, "large xlarge 2xlarge 4xlarge 9xlarge 18xlarge"},
		{"c6i", "x86_64", 2048, sixth}, {"c6id", "x86_64", 2048, sixth}, {"c6in", "x86_64", 2048, sixth}, {"c6a", "x86_64", 2048, sixth + " 48xlarge"},
		{"c7i", "x86_64", 2048, seventh}, {"c7a", "x86_64", 2048, "medium " + sixth + " 48xlarge"}, {"c7i-flex", "x86_64", 2048, flex},
		{"r4", "x86_64", 7808, "large xlarge 2xlarge 4xlarge 8xlarge 16xlarge"},
		{"r5", "x86_64", 8192, fifth}, {"r5a", "x86_64", 8192, fifth}, {"r5d", "x86_64", 8192, fifth}, {"r5n", "x86_64", 8192, fifth},
		{"r6i", "x86_64", 8192, sixth}, {"r6id", "x86_64", 8192, sixth}, {"r6a", "x86_64", 8192, sixth + " 48xlarge"},
		{"r7i", "x86_64", 8192, seventh}, {"r7a", "x86_64", 8192, "medium " + sixth + " 48xlarge"},
		{"i3", "x86_64", 7808, "large xlarge 2xlarge 4xlarge 8xlarge 16xlarge"}, {"i3en", "x86_64", 8192, "large xlarge 2xlarge 3xlarge 6xlarge 12xlarge 24xlarge"},
		{"i4i", "x86_64", 8192, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge"},
		{"g4dn", "x86_64", 4096, gpu}, {"g5", "x86_64", 4096, gpu + " 24xlarge 48xlarge"}, {"g6", "x86_64", 4096, gpu + " 24xlarge 48xlarge"},
		{"p3", "x86_64", 7808, "2xlarge 8xlarge 16xlarge"}, {"p4d", "x86_64", 12288, "24xlarge"}, {"p5", "x86_64", 10922, "48xlarge"},
		{"inf1", "x86_64", 2048, "xlarge 2xlarge 6xlarge 24xlarge"}, {"inf2", "x86_64", 4096, "xlarge 8xlarge 24xlarge 48xlarge"}, {"trn1", "x86_64", 4096, "2xlarge 32xlarge"},
		{"a1", "arm64", 2048, "medium large xlarge 2xlarge 4xlarge"},
		{"m6g", "arm64", 4096, graviton}, {"m6gd", "arm64", 4096, graviton}, {"m7g", "arm64", 4096, graviton}, {"m7gd", "arm64", 4096, graviton}, {"m8g", "arm64", 4096, eighth},
		{"c6g", "arm64", 2048, graviton}, {"c6gd", "arm64", 2048, graviton}, {"c6gn", "arm64", 2048, graviton}, {"c7g", "arm64", 2048, graviton}, {"c7gd", "arm64", 2048, graviton}, {"c7gn", "arm64", 2048, graviton}, {"c8g", "arm64", 2048, eighth},
		{"r6g", "arm64", 8192, graviton}, {"r6gd", "arm64", 8192, graviton}, {"r7g", "arm64", 8192, graviton}, {"r7gd", "arm64", 8192, graviton}, {"r8g", "arm64", 8192, eighth},
		{"g5g", "arm64", 2048, "xlarge 2xlarge 4xlarge 8xlarge 16xlarge"}, {"im4gn", "arm64", 4096, "large xlarge 2xlarge 4xlarge 8xlarge 16xlarge"},
	}
}

// InstanceTypes returns all instance types. They are the same in every region.
var InstanceTypes = sync.OnceValue(func() map[string]instanceType {
	types := map[string]instanceType{"m1.small": {"x86_64", 1, 1740}}
	vcpus := sizeVCPUs()
	for _, f := range families() {
		for _, size := range strings.Fields(f.sizes) {
			types[f.name+"."+size] = instanceType{f.arch, vcpus[size], vcpus[size] * f.ratio}
		}
	}
	burstable := map[string]string{"t2": "x86_64", "t3": "x86_64", "t3a": "x86_64", "t4g": "arm64"}
	for name, arch := range burstable {
		for size, t := range map[string]instanceType{
			"nano": {arch, 2, 512}, "micro": {arch, 2, 1024}, "small": {arch, 2, 2048}, "medium": {arch, 2, 4096},
			"large": {arch, 2, 8192}, "xlarge": {arch, 4, 16384}, "2xlarge": {arch, 8, 32768},
		} {
			if name == "t2" && t.Memory < 4096 {
				t.Vcpus = 1
			}
			types[name+"."+size] = t
		}
	}
	return types
})

// instanceTypeNames returns the names of all types, sorted.
var instanceTypeNames = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(InstanceTypes())) })

// biggest is the number of vCPUs of the biggest type.
const biggest = 192

// vcpuQuota returns the name of the quota against which instances of a type count.
func vcpuQuota(instanceType string, spot bool) string {
	name := "vcpus-standard"
	switch family, _, _ := strings.Cut(instanceType, "."); {
	case strings.HasPrefix(family, "g") || strings.HasPrefix(family, "vt"):
		name = "vcpus-g"
	case spot && strings.HasPrefix(family, "p5"):
		name = "vcpus-p5"
	case strings.HasPrefix(family, "p"):
		name = "vcpus-p"
	case strings.HasPrefix(family, "inf"):
		name = "vcpus-inf"
	case strings.HasPrefix(family, "trn"):
		name = "vcpus-trn"
	}
	if spot {
		name += "-spot"
	}
	return name
}

// vcpusLeft returns the remaining vCPUs of the quota of an instance. Stopped and ending instances do not
// count.
func (r launcher) vcpusLeft(in *Instance) int64 {
	name := vcpuQuota(in.Type, in.Lifecycle == "spot")
	left := int64(r.Quota(name))
	if left > int64(r.Instances.Len()+1)*biggest {
		return left // enough for any existing instances
	}
	for _, id := range r.Instances.Sorted() {
		other := r.Instances.Get(id)
		if (other.State == InstancePending || other.State == InstanceRunning) && vcpuQuota(other.Type, other.Lifecycle == "spot") == name {
			left -= InstanceTypes()[other.Type].Vcpus
		}
	}
	return left
}

// checkVcpus refuses n instances if their quota has too few vCPUs.
func (r launcher) checkVcpus(in *Instance, n int) *wire.Error {
	switch {
	case int64(n)*InstanceTypes()[in.Type].Vcpus <= r.vcpusLeft(in):
		return nil
	case in.Lifecycle == "spot":
		return wire.Fail("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
	}
	return wire.Fail("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", r.Quota(vcpuQuota(in.Type, false)))
}

// applyNotOffered applies a seed's list of types that zones do not offer.
func (r seeder) applyNotOffered(zones map[string][]string) error {
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		if _, known := InstanceTypes()[name]; !known {
			return fmt.Errorf("notOffered: instance type %q is unknown", name)
		}
		for _, zone := range zones[name] {
			if !slices.Contains(r.Zones(), zone) {
				return errors.New("notOffered: zone " + zone + " is unknown")
			}
		}
		if r.NotOffered == nil {
			r.NotOffered = map[string][]string{}
		}
		r.NotOffered[name] = zones[name]
	}
	return nil
}
