package iampolicy

import (
	"maps"
	"slices"
	"strings"
)

// Make returns the policy of a kind for a scope, with a statement for each rule that allows something there.
func Make(access Access, s Scope) Document {
	slices.Sort(s.Regions)
	s.Regions = slices.Compact(s.Regions)
	var order []rule
	actions := map[string][]string{}
	add := func(r rule, action string) {
		if !slices.Contains(r.in, access) || r.on != nil && len(r.on(s)) == 0 {
			return
		}
		if actions[r.sid] == nil {
			order = append(order, r)
		}
		actions[r.sid] = append(actions[r.sid], action)
	}
	for _, o := range operations {
		for _, r := range o.rules {
			add(r, o.action)
		}
	}
	if access == Apply {
		for _, b := range behalf {
			add(b.rule, b.action)
		}
	}
	for _, action := range tableActions {
		add(shareTable, action)
	}
	d := Document{Version: Version, Statement: []Statement{}}
	for _, r := range order {
		if r.sid == passRoles.sid {
			d.Statement = append(d.Statement, passing(s)...)
			continue
		}
		var c Condition
		if r.when != nil {
			c = r.when(s)
		}
		d.Statement = append(d.Statement, allow(r.sid, actions[r.sid], r.on(s), c))
	}
	slices.SortStableFunc(d.Statement, func(a, b Statement) int { return strings.Compare(weight(a), weight(b)) })
	return d
}

// weight sorts reads before writes, and then by name.
func weight(s Statement) string {
	first := "1"
	if strings.HasPrefix(s.Sid, "Read") || strings.HasPrefix(s.Sid, "List") || strings.HasPrefix(s.Sid, "Decrypt") {
		first = "0"
	}
	return first + s.Sid
}

// passing allows passing each role to its services only.
func passing(s Scope) (out []Statement) {
	byServices := map[string][]string{}
	for _, p := range s.PassRoles {
		services := make([]string, len(p.Services))
		for i, name := range p.Services {
			services[i] = serviceIn(s.Partition, name)
		}
		slices.Sort(services)
		key := strings.Join(slices.Compact(services), " ")
		byServices[key] = append(byServices[key], p.ARN)
	}
	for _, key := range slices.Sorted(maps.Keys(byServices)) {
		services := strings.Fields(key)
		sid := passRoles.sid + "To"
		for _, name := range services {
			short, _, _ := strings.Cut(name, ".")
			sid += strings.ToUpper(short[:1]) + short[1:]
		}
		out = append(out, allow(sid, []string{"iam:PassRole"}, byServices[key], equals("iam:PassedToService", services...)))
	}
	return out
}

// TrustRole returns the trust policy of a role that the daemon's identity may assume. principal is the ARN
// of a role or a user.
func TrustRole(principal string) Document {
	return trust("TheDaemon", map[string]string{"AWS": principal}, "sts:AssumeRole", nil)
}

// TrustInstances returns the trust policy of a role for the EC2 instance on which the daemon runs.
func TrustInstances(partition string) Document {
	return trust("TheMachineOfTheDaemon", map[string]string{"Service": serviceIn(partition, EC2)}, "sts:AssumeRole", nil)
}

// TrustServiceAccount returns the trust policy of a role for the daemon in a Kubernetes cluster. provider is
// the ARN of the cluster's OpenID Connect provider, and namespace and name identify the service account.
func TrustServiceAccount(provider, namespace, name string) Document {
	_, issuer, _ := strings.Cut(provider, ":oidc-provider/")
	return trust("TheServiceAccountOfTheDaemon", map[string]string{"Federated": provider}, "sts:AssumeRoleWithWebIdentity", Condition{"StringEquals": {
		issuer + ":aud": {"sts.amazonaws.com"},
		issuer + ":sub": {"system:serviceaccount:" + namespace + ":" + name},
	}})
}

func trust(sid string, principal map[string]string, action string, c Condition) Document {
	s := allow(sid, []string{action}, nil, c)
	s.Principal = principal
	return Document{Version: Version, Statement: []Statement{s}}
}
