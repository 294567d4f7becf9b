package ec2

import (
	"slices"
	"sort"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// TypesMeeting returns the names of the instance types that meet the requirements, smallest first. It checks
// only vCPUs, memory, names, burstable performance and the image's architecture. The other attributes
// exclude none of the emulator's types.
func TypesMeeting(req wire.Data, arch string) []string {
	types := InstanceTypes()
	var names []string
	for name, t := range types {
		if arch != "" && t.Arch != arch || !within(req.Sub("VCpuCount"), float64(t.Vcpus)) ||
			!within(req.Sub("MemoryMiB"), float64(t.Memory)) ||
			!within(req.Sub("MemoryGiBPerVCpu"), float64(t.Memory)/1024/float64(t.Vcpus)) {
			continue
		}
		bursts := req.Text("BurstablePerformance")
		if Burstable(name) && (bursts == "" || bursts == "excluded") || !Burstable(name) && bursts == "required" {
			continue
		}
		allowed, excluded := req.Texts("AllowedInstanceTypes"), req.Texts("ExcludedInstanceTypes")
		if len(allowed) > 0 && !anyWildcard(allowed, name) || anyWildcard(excluded, name) {
			continue
		}
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := types[names[i]], types[names[j]]
		if a.Vcpus != b.Vcpus {
			return a.Vcpus < b.Vcpus
		}
		if a.Memory != b.Memory {
			return a.Memory < b.Memory
		}
		return names[i] < names[j]
	})
	return names
}

func within(bounds wire.Data, v float64) bool {
	low, err := strconv.ParseFloat(bounds.Text("Min"), 64)
	if err == nil && v < low {
		return false
	}
	high, err := strconv.ParseFloat(bounds.Text("Max"), 64)
	return err != nil || v <= high
}

func anyWildcard(patterns []string, text string) bool {
	for _, p := range patterns {
		if Wildcard(p, text) {
			return true
		}
	}
	return false
}

// typesFromRequirements implements GetInstanceTypesFromInstanceRequirements: it returns the instance types
// of the given architectures that meet the requirements.
func typesFromRequirements(rq *request, in wire.Data) error {
	architectures := in.Texts("ArchitectureTypes")
	virtualization := in.Texts("VirtualizationTypes")
	switch {
	case len(architectures) == 0:
		return wire.Fail("MissingParameter", "The request must contain the parameter ArchitectureType")
	case len(virtualization) == 0:
		return wire.Fail("MissingParameter", "The request must contain the parameter VirtualizationType")
	case !in.Has("InstanceRequirements"):
		return wire.Fail("MissingParameter", "The request must contain the parameter InstanceRequirements")
	}
	if err := CheckRequirements(in); err != nil {
		return err
	}
	page := describe{NextToken: in.Text("NextToken")}
	if in.Has("MaxResults") {
		n := in.Integer("MaxResults")
		page.MaxResults = &n
	}
	if err := page.bound(1, 1000, 1000); err != nil {
		return err
	}
	var names []string
	if slices.Contains(virtualization, "hvm") { // all types of the emulator use hvm
		for _, arch := range architectures {
			names = append(names, TypesMeeting(in.Sub("InstanceRequirements"), arch)...)
		}
	}
	slices.Sort(names)
	w := &rq.XML
	w.Open("instanceTypeSet")
	next, err := rq.Page(slices.Compact(names), page.NextToken, page.limit, func(name string) bool {
		w.Open("item")
		w.Text("instanceType", name)
		w.Close("item")
		return true
	})
	if err != nil {
		return err
	}
	w.Close("instanceTypeSet")
	w.Optional("nextToken", next)
	return nil
}
