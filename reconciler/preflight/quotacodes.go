package preflight

import "strings"

// QuotaCode identifies a quota of vCPUs in Service Quotas.
type QuotaCode struct {
	Code string
	Spot bool
	// name is the name that weir shows.
	name string
}

// QuotaCodes returns the codes of all quotas that weir reads, without duplicates.
func QuotaCodes() (out []QuotaCode) {
	seen := map[string]bool{}
	for _, q := range quotas {
		for _, c := range []QuotaCode{{q.onDemand, false, q.name}, {q.spot, true, q.name}} {
			if c.Code != "" && !seen[c.Code] {
				seen[c.Code] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// String returns the quota's name.
func (q QuotaCode) String() string {
	if q.Spot {
		return q.name + " Spot instances"
	}
	return q.name + " On-Demand instances"
}

// Fits reports whether a name in Service Quotas belongs to the quota. Examples are "Running On-Demand Inf
// instances" and "All P4, P3 and P2 Spot Instance Requests".
func (q QuotaCode) Fits(name string) bool {
	head, tail := "running on-demand ", " instances"
	if q.Spot {
		head, tail = "all ", " spot instance requests"
	}
	name = strings.ToLower(name)
	middle, begins := strings.CutPrefix(name, head)
	middle, ends := strings.CutSuffix(middle, tail)
	want := strings.ToLower(q.name)
	return begins && ends && (middle == want || strings.HasPrefix(middle, want) && strings.ContainsAny(middle[len(want):len(want)+1], "0123456789"))
}
