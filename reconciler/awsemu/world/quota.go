package world

import (
	"fmt"
	"maps"
	"sort"
	"strings"
)

// raised is more than any fleet has.
const raised = 10_000_000

// defaultQuotas are AWS's quotas, by the names that [Options] overrides.
func defaultQuotas() map[string]int {
	return map[string]int{
		"launch-templates":           5000, // in a region
		"launch-template-versions":   10000,
		"auto-scaling-groups":        500, // in a region
		"launch-configurations":      200, // in a region
		"overrides":                  40,  // in a mixed instances policy
		"launch-templates-per-group": 20,
		"lifecycle-hooks":            50, // of a group
		"target-groups":              50, // of a group
		"clusters":                   100,
		"nodegroups-per-cluster":     30,
		"nodes-per-nodegroup":        450,
		"tags":                       50, // of a resource
		// The least that the last checkpoint percentage of an instance refresh may be. AWS
		// documents that a refresh may end below 100; 100 is an AWS that refuses that.
		"last-checkpoint":  1,
		"vpcs":             5,
		"subnets-per-vpc":  200,
		"security-groups":  2500, // in a region
		"dynamodb-tables":  2500, // in a region
		"placement-groups": 500,  // in a region

		// vCPUs of running instances, by how they are bought and their types' class. New
		// accounts have few; this one had them raised.
		"vcpus-standard": raised, "vcpus-standard-spot": raised,
		"vcpus-g": raised, "vcpus-g-spot": raised,
		"vcpus-p": raised, "vcpus-p-spot": raised, "vcpus-p5-spot": raised,
		"vcpus-inf": raised, "vcpus-inf-spot": raised,
		"vcpus-trn": raised, "vcpus-trn-spot": raised,
	}
}

// QuotaNames returns the names of the quotas that [Options] can override, sorted.
func QuotaNames() []string {
	quotas := defaultQuotas()
	names := make([]string, 0, len(quotas))
	for name := range quotas {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func MergeQuotas(overrides map[string]int) (map[string]int, error) {
	quotas := defaultQuotas()
	for name, n := range overrides {
		if _, known := quotas[name]; !known {
			return nil, fmt.Errorf("set quota %q: unknown name, one of %s", name, strings.Join(QuotaNames(), ", "))
		}
		if n < 0 {
			return nil, fmt.Errorf("set quota %q: %d is negative", name, n)
		}
		quotas[name] = n
	}
	return quotas, nil
}

// Quota returns the value of a quota: the region's own, or that of all regions.
func (r *Region) Quota(name string) int {
	if n, own := r.Quotas[name]; own {
		return n
	}
	return r.world.Quotas[name]
}

// SetQuotas gives the region values of its own.
func (r *Region) SetQuotas(values map[string]int) error {
	if _, err := MergeQuotas(values); err != nil {
		return err
	}
	if r.Quotas == nil && len(values) > 0 {
		r.Quotas = map[string]int{}
	}
	maps.Copy(r.Quotas, values)
	return nil
}
