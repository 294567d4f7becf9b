package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Answer returns the answer to a lookup of pool, or records why there is no answer. A lookup that
// AWS did not answer blocks the pool. It never becomes a default.
func (c *Work) Answer(pool *intent.Pool, l intent.Lookup) (observed.Answer, bool) {
	a, ok := c.In.Answers[l]
	switch {
	case !ok:
		c.Blockf(pool, nil, "lookup-unanswered", "the question for "+l.String()+" was not answered", "weir asks again at the next pass")
		return observed.Answer{}, false
	case a.Problem != "" && stays(c.In.State, pool, a):
		object, path := asksFor(pool, l, a.Code)
		c.NoteAt(diag.Warning, object, path, "default-network", "the region now has another VPC, so weir no longer uses the default VPC for new pools; this pool's machines stay in it", "")
		return a, true
	case a.Problem != "" && c.saidAlready(pool, a):
		c.Blocked = true
		return observed.Answer{}, false
	case a.Problem != "":
		object, path := asksFor(pool, l, a.Code)
		c.blockAt(object, path, a.Code, a.Problem, "")
		return observed.Answer{}, false
	}
	if a.Warning != "" {
		object, path := asksFor(pool, l, a.Code)
		c.NoteAt(diag.Warning, object, path, cmp.Or(a.Code, "lookup"), a.Warning, "")
	}
	return a, true
}

// stays reports whether a pool keeps the lapsed answer: its group runs only in the lapsed subnets.
func stays(state *observed.State, pool *intent.Pool, a observed.Answer) bool {
	if pool.Group == nil || len(a.Lapsed) == 0 {
		return false
	}
	g, ok := state.Groups[pool.Group.Name]
	return ok && !g.Deleting && len(g.SubnetIDs) > 0 && !slices.ContainsFunc(g.SubnetIDs, func(id string) bool { return !slices.Contains(a.Lapsed, id) })
}

// saidAlready reports whether the same problem was already reported for another lookup of the pool.
func (c *Work) saidAlready(pool *intent.Pool, a observed.Answer) bool {
	same := func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && d.Code == a.Code && d.Summary == a.Problem && d.Object == pool.Infrastructure.String()
	}
	return slices.ContainsFunc(c.Said, same) || slices.ContainsFunc(c.Diags, same)
}

// OneVPC blocks a pool whose subnets and security groups are not all in one VPC. EC2 cannot launch
// instances with such a combination.
func (c *Work) OneVPC(pool *intent.Pool, subnets observed.Answer) {
	if len(subnets.VPCs) > 1 {
		object, path := asksFor(pool, SubnetsOf(pool), "")
		c.blockAt(object, path, "network-mismatch", "the pool's subnets are in several VPCs: "+strings.Join(subnets.VPCs, ", "), "")
		return
	}
	if pool.LaunchTemplate == nil || len(subnets.VPCs) == 0 {
		return
	}
	for l := range pool.Lookups() {
		switch l.Kind {
		case intent.CoreSecurityGroups, intent.SecurityGroupsByFilter, intent.SecurityGroupByID:
		default:
			continue
		}
		a := c.In.Answers[l]
		if other := slices.IndexFunc(a.VPCs, func(vpc string) bool { return vpc != subnets.VPCs[0] }); other >= 0 {
			object, path := asksFor(pool, l, a.Code)
			which := "of its security groups " + strings.Join(a.SecurityGroups, ", ") + " some are in "
			if len(a.SecurityGroups) == 1 {
				which = "its security group " + a.SecurityGroups[0] + " is in "
			}
			c.blockAt(object, path, "network-mismatch", "the pool's subnets are in "+subnets.VPCs[0]+", and "+which+a.VPCs[other], "")
		}
	}
}

// SubnetsOf returns the lookup for a pool's subnets.
func SubnetsOf(pool *intent.Pool) intent.Lookup {
	if pool.Nodegroup != nil {
		return pool.Nodegroup.Subnets
	}
	return pool.Group.Subnets
}

// givenGroupPath returns the field that names a security group by its id. If other groups are found
// by filters, the intent does not show which element of the list it is, so the whole list is
// returned.
func givenGroupPath(pool *intent.Pool, id string) intent.Path {
	at := intent.Path{"spec", "awsLaunchTemplate", "additionalSecurityGroups"}
	t := pool.LaunchTemplate
	i := slices.Index(t.Data.SecurityGroupIDs, id)
	switch filtered := slices.ContainsFunc(t.SecurityGroups, func(l intent.Lookup) bool { return l.Kind == intent.SecurityGroupsByFilter }); {
	case i < 0: // the group of a network interface, which is in PoolOptions
		return nil
	case filtered:
		return at
	}
	return at.Join(intent.Index(i), "id")
}

// asksFor returns the object and the field that cause a lookup. code narrows the field.
func asksFor(pool *intent.Pool, l intent.Lookup, code string) (intent.ObjectRef, intent.Path) {
	switch {
	case code == "instance-type-unknown" && pool.ForeignTemplate == nil:
		return pool.TypeField(l.InstanceType)
	case code == "launch-template-version-not-found":
		f := foreignTemplate(pool, l)
		return pool.Infrastructure, f.Field()
	case l.Kind == intent.Subnets && l.Zones != "" && pool.FailureDomains:
		return pool.MachinePool, intent.Path{"spec", "failureDomains"}
	case l.Kind == intent.Subnets && l.Zones != "":
		return pool.Infrastructure, intent.Path{"spec", "availabilityZones"}
	}
	return pool.Infrastructure, lookupPath(pool, l)
}

// lookupPath returns the field of the pool's infrastructure object that causes a lookup.
func lookupPath(pool *intent.Pool, l intent.Lookup) intent.Path {
	switch l.Kind {
	case intent.ImageByID:
		return intent.Path{"spec", "awsLaunchTemplate", "ami", "id"}
	case intent.ImageForEKS, intent.ImageByName, intent.ImageByParameter:
		return intent.Path{"spec", "awsLaunchTemplate"}
	case intent.Subnets:
		if pool.Kind == intent.NodegroupPool {
			return intent.Path{"spec", "subnetIDs"}
		}
		return intent.Path{"spec", "subnets"}
	case intent.SecurityGroupsByFilter:
		if n := pool.Nodegroup; n != nil && slices.Contains(n.RemoteAccessGroups, l) {
			return intent.Path{"spec", "remoteAccess"}
		}
		return intent.Path{"spec", "awsLaunchTemplate", "additionalSecurityGroups"}
	case intent.SecurityGroupByID:
		return givenGroupPath(pool, l.Name)
	case intent.Role:
		return intent.Path{"spec", "roleName"}
	case intent.RolePolicies:
		return intent.Path{"spec", "roleAdditionalPolicies"}
	case intent.RolePath:
		return intent.Path{"spec", "rolePath"}
	case intent.RoleBoundary:
		return intent.Path{"spec", "rolePermissionsBoundary"}
	case intent.TemplateByName, intent.TemplateByID:
		return foreignTemplate(pool, l).NameField
	}
	return nil
}

// Brought adds to names, by name or by id, the launch templates that the pools of
// a set bring along.
func Brought(set *intent.Set, names map[string]bool) {
	for i := range set.Pools {
		for _, f := range ForeignTemplates(&set.Pools[i]) {
			names[f.Lookup.Name] = true
		}
	}
}

// ForeignTemplates returns all launch templates that a pool brings along.
func ForeignTemplates(pool *intent.Pool) []intent.ForeignTemplate {
	if pool.ForeignTemplate == nil {
		return nil
	}
	return append([]intent.ForeignTemplate{*pool.ForeignTemplate}, pool.ForeignOverrides...)
}

// foreignTemplate returns the pool's foreign template that needs lookup l.
func foreignTemplate(pool *intent.Pool, l intent.Lookup) intent.ForeignTemplate {
	for _, f := range ForeignTemplates(pool) {
		if f.Lookup == l {
			return f
		}
	}
	return intent.ForeignTemplate{}
}
