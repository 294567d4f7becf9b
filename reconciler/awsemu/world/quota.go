package world

import (
	"fmt"
	"maps"
	"sort"
	"strings"
)

// raised is more than any fleet needs.
const raised = 10_000_000

// defaultQuotas returns AWS's quotas by name. [Options] can override them.
func defaultQuotas() map[string]int {
	return map[string]int{
		"launch-templates":           5000, // per region
		"launch-template-versions":   10000,
		"auto-scaling-groups":        500, // per region
		"launch-configurations":      200, // per region
		"overrides":                  40,  // per mixed instances policy
		"launch-templates-per-group": 20,
		"lifecycle-hooks":            50, // per group
		"target-groups":              50, // per group
		"clusters":                   100,
		"nodegroups-per-cluster":     30,
		"nodes-per-nodegroup":        450,
		"tags":                       50, // per resource
		// The minimum of the last checkpoint percentage of an instance refresh. AWS documents that a refresh
		// may end below 100. The value 100 models an AWS that refuses that.
		"last-checkpoint":  1,
		"vpcs":             5,
		"subnets-per-vpc":  200,
		"security-groups":  2500, // per region
		"dynamodb-tables":  2500, // per region
		"placement-groups": 500,  // per region

		// vCPUs of running instances, by purchase option and class of their types. New accounts have low
		// values. Here they are raised.
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

// Quota returns the value of a quota: the region's own, or else the value for all regions.
func (r *Region) Quota(name string) int {
	if n, own := r.Quotas[name]; own {
		return n
	}
	return r.world.Quotas[name]
}

// SetQuotas sets the region's own values.
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
