package preflight

import (
	"fmt"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// quota is a limit on concurrently running vCPUs. EC2 has one for several families of instance types in each
// market.
type quota struct {
	families       string // family names, and letters with which other families start
	name           string
	onDemand, spot string // codes in Service Quotas
}

// quotas lists the quotas of "Amazon EC2 On-Demand Instance quotas" and "Spot Instance quotas" in the EC2
// user guide. Families without an entry (Mac, and high memory) run on dedicated hosts or have quotas of
// their own.
// Assumed of AWS: quota-families.
var quotas = []quota{
	{"a c d h i im is m r t z", "standard (A, C, D, H, I, M, R, T, Z)", "L-1216C47A", "L-34B43A08"},
	{"dl", "DL", "L-6E869C2A", "L-85EED4F7"},
	{"f", "F", "L-74FC7D96", "L-88CF9481"},
	{"g vt gr", "G and VT", "L-DB2E81BA", "L-3819A6DF"},
	{"hpc", "HPC", "L-F7808C92", ""},
	{"inf", "Inf", "L-1945791B", "L-B5D1601B"},
	{"p", "P", "L-417A185B", "L-7212CCBC"},
	{"p5 p5e p5en p6", "P", "L-417A185B", "L-C4BD4855"},
	{"trn", "Trn", "L-2C3B7624", "L-6B0D517C"},
	{"x", "X", "L-7295265B", "L-E3A00192"},
}

// byFamily returns the quotas by each word of their families.
var byFamily = sync.OnceValue(func() map[string]quota {
	m := map[string]quota{}
	for _, q := range quotas {
		for _, name := range strings.Fields(q.families) {
			m[name] = q
		}
	}
	return m
})

var familyLetters = lazyregexp.New(`^[a-z]+`)

// quotaOf returns the quota that an instance type counts against.
func quotaOf(instanceType string) (quota, bool) {
	family, _, _ := strings.Cut(instanceType, ".")
	family, _, _ = strings.Cut(family, "-")
	for _, name := range []string{family, familyLetters.FindString(family)} {
		if q, ok := byFamily()[name]; ok {
			return q, true
		}
	}
	return quota{}, false
}

// need is the minimum number of vCPUs that the additional machines of a launch count against a quota.
type need struct {
	quota quota
	spot  bool
	vcpus int64
	// each is the number for one machine.
	each int64
}

// code returns the quota's code in Service Quotas, or an empty string if the market has none.
func (n need) code() string {
	if n.spot {
		return n.quota.spot
	}
	return n.quota.onDemand
}

func (n need) String() string {
	if n.spot {
		return n.quota.name + " Spot"
	}
	return n.quota.name + " On-Demand"
}

// cannotBegin ends the message about a rollout that launches machines before it terminates others, if the
// quota has room for none.
const cannotBegin = "the rollout launches machines before it terminates others, and there is no room for any, so it does not start"

// needs returns the needs of a launch. It returns none if AWS may choose among types of several quotas.
func (v *verdict) needs(l *launch) []need {
	if l.more == 0 || len(l.types) == 0 || l.data.InstanceMarketOptions != nil && l.data.InstanceMarketOptions.MarketType == "capacity-block" ||
		l.data.Placement != nil && l.data.Placement.Tenancy == "host" {
		return nil
	}
	first, least := v.leastVCPUs(l)
	if least == 0 {
		return nil
	}
	var out []need
	if spot := l.spot * int64(least); spot > 0 && first.spot != "" {
		out = append(out, need{first, true, spot, int64(least)})
	}
	if onDemand := l.onDemand * int64(least); onDemand > 0 && first.onDemand != "" {
		out = append(out, need{first, false, onDemand, int64(least)})
	}
	return out
}

// leastVCPUs returns the quota that all types of a launch count against, and the vCPUs of the smallest type.
// The number is 0 if a type is unknown or counts against another quota.
func (v *verdict) leastVCPUs(l *launch) (first quota, least int32) {
	first, ok := quotaOf(l.types[0].value)
	for _, t := range l.types {
		q, same := quotaOf(t.value)
		info, known, _ := know(v, v.facts.types, t.value)
		if !ok || !same || q != first || !known || info.VCPUs == 0 {
			return first, 0
		}
		n := info.VCPUs
		if c := l.data.CPUOptions; c != nil && c.CoreCount > 0 {
			n = c.CoreCount * max(1, c.ThreadsPerCore)
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return first, least
}

// quotas checks whether the account's quotas have room for the additional machines of a plan.
func (v *verdict) quotas(launches []*launch) {
	wanted := map[string]int64{}
	for _, l := range launches {
		for _, n := range v.needs(l) {
			code := n.code()
			limit, ok, _ := know(v, v.facts.quotas, code)
			if !ok {
				continue
			}
			running, ok, _ := know(v, v.facts.running, "")
			if !ok {
				continue
			}
			used, counted := v.used[code]
			if !counted {
				used = v.inUse(running, n)
				v.used[code] = used
			}
			before := wanted[code]
			wanted[code] += n.vcpus
			if room := int64(limit) - used; before <= room && wanted[code] > room {
				v.facts.quotas.doubt(code)
				object, path := sizeField(l.pool)
				follows, advice := "AWS launches only some", "request a higher quota: aws service-quotas request-service-quota-increase --service-code ec2 --quota-code "+code+" --desired-value N"
				if l.onlySurges() && room-before < n.each {
					var first string
					object, path, first = l.endsFirst()
					follows, advice = cannotBegin, advice+", "+first
				}
				v.findings.warn(codeShort, object, path, fmt.Sprintf("the account may run %d vCPUs of %s machines and runs %d, and the plan wants %d more%s: %s", int64(limit), n, used, wanted[code], withOthers(before), follows), advice)
			}
		}
	}
}

// inUse returns the minimum number of vCPUs that currently count against a quota.
func (v *verdict) inUse(running []Instance, n need) (sum int64) {
	counts := map[string]bool{} // whether a type counts against it
	for _, i := range running {
		counted, known := counts[i.Type]
		if !known {
			q, ok := quotaOf(i.Type)
			counted = ok && (need{quota: q, spot: n.spot}).code() == n.code()
			counts[i.Type] = counted
		}
		if !counted || i.Spot != n.spot {
			continue
		}
		vcpus := i.VCPUs
		if vcpus == 0 {
			info, _, _ := know(v, v.facts.types, i.Type)
			vcpus = max(info.VCPUs, 1)
		}
		sum += int64(vcpus)
	}
	return sum
}

// sizeField returns the field with the number of a pool's machines.
func sizeField(pool *intent.Pool) (intent.ObjectRef, intent.Path) {
	if pool.Replicas.Written {
		return pool.MachinePool, intent.Path{"spec", "replicas"}
	}
	if pool.Nodegroup != nil {
		return pool.Infrastructure, intent.Path{"spec", "scaling", "minSize"}
	}
	return pool.Infrastructure, intent.Path{"spec", "minSize"}
}
