package rules

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// checkRequirements applies the rules of InstanceRequirements in the API reference
// of Auto Scaling.
func checkRequirements(r kinds.Reporter, p intent.Path, q *intent.InstanceRequirements) {
	if q == nil {
		return
	}
	if len(q.AllowedInstanceTypes) > 0 && len(q.ExcludedInstanceTypes) > 0 {
		r.Error(p.Join("excludedInstanceTypes"), "exclusive", p.Join("excludedInstanceTypes").String()+" excludes allowedInstanceTypes", "")
	}
	if q.SpotMaxPrice != nil && q.MaxSpotPrice != nil {
		at := p.Join("maxSpotPriceAsPercentageOfOptimalOnDemandPrice")
		r.Error(at, "exclusive", at.String()+" excludes spotMaxPricePercentageOverLowestPrice", "")
	}
	checkLists(r, p, q)
	checkBounds(r, p, q)
	if f := q.BaselinePerformanceFactors; f != nil && f.CPU != nil && len(f.CPU.References) != 1 {
		at := p.Join("baselinePerformanceFactors", "cpu", "references")
		r.Error(at, "out-of-range", fmt.Sprintf("%s names %d instance families; AWS allows one", at, len(f.CPU.References)), "")
	}
}

// checkLists checks the lists of instance requirements: their length, and that AWS knows their values.
func checkLists(r kinds.Reporter, p intent.Path, q *intent.InstanceRequirements) {
	for field, list := range map[string]struct{ have, known []string }{
		"acceleratorManufacturers": {q.AcceleratorManufacturers, []string{"nvidia", "amd", "amazon-web-services", "xilinx", "habana"}},
		"acceleratorTypes":         {q.AcceleratorTypes, []string{"gpu", "fpga", "inference", "media"}},
		"cpuManufacturers":         {q.CPUManufacturers, []string{"intel", "amd", "amazon-web-services", "apple"}},
		"instanceGenerations":      {q.InstanceGenerations, []string{"current", "previous"}},
		"localStorageTypes":        {q.LocalStorageTypes, []string{"hdd", "ssd"}},
		"acceleratorNames":         {q.AcceleratorNames, nil},
		"allowedInstanceTypes":     {q.AllowedInstanceTypes, nil},
		"excludedInstanceTypes":    {q.ExcludedInstanceTypes, nil},
	} {
		if len(list.have) > 400 {
			r.Error(p.Join(field), "out-of-range", fmt.Sprintf("%s has %d entries; AWS allows 400", p.Join(field), len(list.have)), "")
		}
		each(r, p.Join(field), list.have, func(v string) string {
			if v == "" || list.known != nil && !slices.Contains(list.known, v) {
				return "it must be " + kinds.OneOf(list.known)
			}
			return ""
		})
	}
}

// checkBounds checks that no minimum exceeds its maximum, and that the bounds that AWS requires are present.
func checkBounds(r kinds.Reporter, p intent.Path, q *intent.InstanceRequirements) {
	for field, b := range map[string]*intent.Bounds{
		"acceleratorCount": q.AcceleratorCount, "acceleratorTotalMemoryMiB": q.AcceleratorTotalMemoryMiB, "baselineEbsBandwidthMbps": q.BaselineEBSBandwidthMbps,
		"memoryMiB": q.MemoryMiB, "networkInterfaceCount": q.NetworkInterfaceCount, "vCpuCount": q.VCPUCount,
	} {
		if b != nil && b.Min != nil && b.Max != nil && *b.Min > *b.Max {
			r.Error(p.Join(field), "out-of-range", fmt.Sprintf("%s has min %d above max %d", p.Join(field), *b.Min, *b.Max), "")
		}
	}
	for field, b := range map[string]*intent.Range{"memoryGiBPerVCpu": q.MemoryGiBPerVCPU, "networkBandwidthGbps": q.NetworkBandwidthGbps, "totalLocalStorageGB": q.TotalLocalStorageGB} {
		if b != nil && b.Min != nil && b.Max != nil && *b.Min > *b.Max {
			r.Error(p.Join(field), "out-of-range", fmt.Sprintf("%s has min %v above max %v", p.Join(field), *b.Min, *b.Max), "")
		}
	}
	for field, b := range map[string]*intent.Bounds{"memoryMiB": q.MemoryMiB, "vCpuCount": q.VCPUCount} {
		if b != nil && b.Min == nil {
			r.Error(p.Join(field, "min"), "missing-required", p.Join(field, "min").String()+" is required", "write 0 for no minimum")
		}
	}
}
