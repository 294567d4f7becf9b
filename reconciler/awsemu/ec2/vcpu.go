package ec2

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// biggest are the vCPUs of the biggest type.
const biggest = 192

// vcpuQuota is the name of the quota that instances of a type count against.
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

// vcpusLeft is how many vCPUs the quota of an instance leaves. Instances that are
// stopped or end do not count.
func (r launcher) vcpusLeft(in *Instance) int64 {
	name := vcpuQuota(in.Type, in.Lifecycle == "spot")
	left := int64(r.Quota(name))
	if left > int64(r.Instances.Len()+1)*biggest {
		return left // whatever these instances are
	}
	for _, id := range r.Instances.Sorted() {
		other := r.Instances.Get(id)
		if (other.State == InstancePending || other.State == InstanceRunning) && vcpuQuota(other.Type, other.Lifecycle == "spot") == name {
			left -= InstanceTypes()[other.Type].Vcpus
		}
	}
	return left
}

// checkVcpus refuses n instances for which the quota has no vCPUs.
func (r launcher) checkVcpus(in *Instance, n int) *wire.Error {
	switch {
	case int64(n)*InstanceTypes()[in.Type].Vcpus <= r.vcpusLeft(in):
		return nil
	case in.Lifecycle == "spot":
		return wire.Fail("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
	}
	return wire.Fail("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.", r.Quota(vcpuQuota(in.Type, false)))
}

// applyNotOffered notes where a seed has types not offered.
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
