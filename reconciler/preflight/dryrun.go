package preflight

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// mostDryRuns bounds the dry runs of one plan. EC2 gives RunInstances a small token bucket, which real
// launches use too. Pools with equal launch parameters share a dry run.
const mostDryRuns = 5

// launch makes dry runs of launches without other findings, because EC2 has more rules than weir checks.
func (v *verdict) launch(launches []*launch) {
	tried := map[string]bool{}
	for _, l := range launches {
		r, ok := v.dryRunOf(l)
		if !ok {
			continue
		}
		key := r.key()
		if !tried[key] && len(tried) == mostDryRuns {
			continue
		}
		tried[key] = true
		refused, ok, _ := know(v, v.facts.dryRuns, key)
		object, path := l.pool.Infrastructure, intent.Path{"spec", "awsLaunchTemplate"}
		if f := v.facts.dryRuns.facts[key]; f.err != nil && f.err.Code == CodeNotDry {
			v.findings.warn(codeDryRun, object, path, "a dry run had an effect: "+f.err.Message, "end the machine; weir makes no further dry run there")
		}
		if !ok || refused == nil {
			continue
		}
		v.facts.dryRuns.doubt(key)
		if u, found := observed.FindUnknownName(refused.Message); found {
			object, path = u.Field(l.pool)
		} else if c := l.pool.LaunchConfig; c != nil {
			object, path = c.Source, c.Spec()
		}
		v.findings.warn(codeDryRun, object, path, "EC2 would not launch a machine of the new template version: "+refused.Code+": "+refused.Message, "")
	}
}

// dryRunOf returns the dry run for a launch whose template version the plan makes. It returns none if no
// place offers one of the pool's types: EC2 would refuse a type that the zone does not offer, although the
// group launches elsewhere.
func (v *verdict) dryRunOf(l *launch) (DryRun, bool) {
	if !l.made || l.data.ImageID == "" || len(l.types) == 0 || len(l.subnets) == 0 {
		return DryRun{}, false // EKS chooses the image, or AWS chooses the type
	}
	r := DryRun{Data: l.data}
	var ok bool
	if r.Type, r.Subnet, ok = v.offeredPlace(l); !ok {
		return DryRun{}, false
	}
	// User data may contain secrets, and EC2 checks only its size. Tags need an additional permission.
	r.Data.UserData, r.Data.TagSpecifications, r.Data.InstanceType = "", nil, ""
	return r, true
}

// offeredPlace returns the pool's first instance type with the first subnet whose zone offers that type and
// that has a free address. If the machines are bound to reserved capacity, the zone must have it too. It
// returns false if no such place exists, or AWS did not answer.
func (v *verdict) offeredPlace(l *launch) (instanceType, subnet string, ok bool) {
	var reserved []Reservation
	bond, bound := l.bound()
	if bound {
		all, known, _ := know(v, v.facts.reserved, "")
		if !known {
			return "", "", false
		}
		reserved = all
	}
	subnets := launchSubnets(l)
	zones := map[string]string{} // of subnets with a free address
	for _, id := range subnets {
		if s, known, _ := know(v, v.facts.subnets, id); known && (s.Free > 0 || s.NoIPv4) {
			zones[id] = s.Zone
		}
	}
	if len(zones) == 0 {
		return "", "", false
	}
	for _, t := range l.types {
		offered, _, _ := know(v, v.facts.offerings, t.value)
		for _, id := range subnets {
			zone := zones[id]
			if !slices.Contains(offered, zone) {
				continue
			}
			if !bound || slices.ContainsFunc(reserved, func(c Reservation) bool { return bond.takes(c) && c.Type == t.value && c.Zone == zone }) {
				return t.value, id, true
			}
		}
	}
	return "", "", false
}

// launchSubnets returns the subnets for a dry run: the subnet of the launch template's network interface,
// else the subnets of the pool.
func launchSubnets(l *launch) []string {
	for _, n := range l.data.NetworkInterfaces {
		if n.SubnetID != "" {
			return []string{n.SubnetID}
		}
	}
	return l.subnets
}

// key returns a text that is equal for equal dry runs.
func (r DryRun) key() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic("key of a dry run: " + err.Error())
	}
	return string(text)
}

// tryLaunch makes the dry run that a key describes.
func (a *Asker) tryLaunch(ctx context.Context, key string) (refused *observed.Error, answered bool, err error) {
	var r DryRun
	if err := json.Unmarshal([]byte(key), &r); err != nil {
		panic("dry run of a key: " + err.Error())
	}
	refused, failed := a.launcher.DryRun(ctx, r)
	if failed != nil && failed.Code == CodeNotDry {
		a.launcher = nil
	}
	if failed != nil {
		return nil, false, failed
	}
	return refused, true, nil
}
