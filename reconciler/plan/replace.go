package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// How a nodegroup is replaced: what EKS cannot change in place is made anew, under
// a name of its own, beside the nodegroup that there is; once the new one is ACTIVE
// the old one is deleted, which EKS does by draining its nodes. Which of the two a
// pass has to do follows from what AWS holds: the nodegroup that has what Git wants
// is the pool's, and the others that carry the pool's tag go. So a replacement goes
// on after a crash, and turns round where Git does.

// maxNodegroupName is EKS's limit for a nodegroup's name.
const maxNodegroupName = 63

// replacementSuffix follows the name in Git in that of a replacement.
var replacementSuffix = regexp.MustCompile(`^-[0-9a-f]{6}$`)

// replacementBase is the name in Git, cut so that a suffix fits.
func replacementBase(name string) string {
	return name[:min(len(name), maxNodegroupName-len("-000000"))]
}

// standsFor reports whether a nodegroup's name is the one in Git or that of a
// replacement for it.
func standsFor(name, wanted string) bool {
	suffix, ok := strings.CutPrefix(name, replacementBase(wanted))
	return name == wanted || ok && replacementSuffix.MatchString(suffix)
}

// nodegroupRank orders the nodegroups of a pool: those that serve come first.
func nodegroupRank(n observed.Nodegroup) int {
	switch n.Status {
	case "ACTIVE", "UPDATING", "DEGRADED":
		return 0
	case "CREATING":
		return 1
	case "DELETING":
		return 3
	}
	return 2
}

// nodegroupsOf returns the nodegroups of the state that stand for a pool, by the
// pool's tag: those that serve first, then by age. Where none has the tag and is
// the instance's, what is in the way is returned.
func (in Input) nodegroupsOf(pool *intent.Pool) []observed.Nodegroup {
	n := pool.Nodegroup
	index := in.Index
	if index == nil {
		index = NewIndex(in.State)
	}
	var ours, others []observed.Nodegroup
	for _, name := range index.ofPool[pool.Key.String()] {
		switch have := in.State.Nodegroups[name]; {
		case name.Cluster != n.ClusterName || !standsFor(name.Name, n.Name) || in.namedInGit(name, n.Name):
		case have.Tags[observed.TagOwner] == in.Policy.Instance:
			ours = append(ours, have)
		default:
			others = append(others, have)
		}
	}
	if len(ours) == 0 { // a MachinePool that was renamed
		for _, name := range index.replacements[observed.NodegroupName{Cluster: n.ClusterName, Name: replacementBase(n.Name)}] {
			if have := in.State.Nodegroups[name]; have.Tags[observed.TagOwner] == in.Policy.Instance && !in.hasPool(have.Tags[observed.TagPool]) && !in.namedInGit(name, n.Name) {
				ours = append(ours, have)
			}
		}
	}
	if len(ours) == 0 {
		ours = others
	}
	if len(ours) == 0 {
		if have, found := in.State.Nodegroups[observed.NodegroupName{Cluster: n.ClusterName, Name: n.Name}]; found {
			ours = append(ours, have)
		}
	}
	slices.SortFunc(ours, func(a, b observed.Nodegroup) int {
		if d := nodegroupRank(a) - nodegroupRank(b); d != 0 {
			return d
		}
		if d := a.CreatedAt.Compare(b.CreatedAt); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return ours
}

// namedInGit reports whether some pool other than that of wanted has the nodegroup's
// name in Git: it is no replacement then, though its name may look like one.
func (in Input) namedInGit(name observed.NodegroupName, wanted string) bool {
	_, named := in.Fleet.Wanted[Claim{Resource: step.ManagedNodegroup, Name: name.Name, Cluster: name.Cluster}]
	return named && name.Name != wanted
}

// hasPool reports whether the target's render has a pool with the key.
func (in Input) hasPool(key string) bool {
	return in.Set != nil && slices.ContainsFunc(in.Set.Pools, func(p intent.Pool) bool { return p.Key.String() == key })
}

// replaceable reports whether the orphan is a nodegroup of a pool that some target
// wants: planning that pool decides what becomes of it.
func (in Input) replaceable(name observed.NodegroupName) bool {
	for i := range in.Set.Pools {
		p := &in.Set.Pools[i]
		n := p.Nodegroup
		if n == nil || n.ClusterName != name.Cluster || !standsFor(name.Name, n.Name) {
			continue
		}
		if slices.ContainsFunc(in.nodegroupsOf(p), func(have observed.Nodegroup) bool { return have.NodegroupName == name }) {
			return true
		}
	}
	base, _, cut := cutSuffix(name.Name)
	wanted := observed.NodegroupName{Cluster: name.Cluster, Name: base}
	target := in.Fleet.Wanted[Claim{Resource: step.ManagedNodegroup, Name: base, Cluster: name.Cluster}]
	if !cut || target == "" || target == in.Policy.Target {
		return false
	}
	// That target's pool takes no other pool's nodegroup where it has one of its own.
	return !slices.ContainsFunc(append([]observed.NodegroupName{wanted}, in.Index.replacements[wanted]...), func(own observed.NodegroupName) bool {
		tags := in.State.Nodegroups[own].Tags
		return tags[observed.TagOwner] == in.Policy.Instance && tags[observed.TagTarget] == target && tags[observed.TagPool] != in.State.Nodegroups[name].Tags[observed.TagPool]
	})
}

// cutSuffix takes the suffix of a replacement off a name.
func cutSuffix(name string) (base, suffix string, ok bool) {
	at := len(name) - len("-000000")
	if at <= 0 || !replacementSuffix.MatchString(name[at:]) {
		return name, "", false
	}
	return name[:at], name[at:], true
}

// unreadNodegroups blocks the pool where one of its nodegroups might be among
// those that AWS does not let weir read.
func (c nodegroups) unreadNodegroups(pool *intent.Pool) bool {
	n := pool.Nodegroup
	name := observed.NodegroupName{Cluster: n.ClusterName, Name: n.Name}
	if c.unread(pool, "the nodegroup "+name.String(), c.in.State.Unread.Nodegroup(name)) {
		return true
	}
	for other, err := range c.in.State.Unread.Nodegroups {
		if other.Cluster == n.ClusterName && standsFor(other.Name, n.Name) {
			return c.unread(pool, "the nodegroup "+other.String(), err)
		}
	}
	return false
}

// behindUnseen asks for nodegroups of the pool that are not in the state although
// a group behind them is: a list of nodegroups may be out of date.
func (c nodegroups) behindUnseen(pool *intent.Pool) bool {
	unseen := false
	for _, group := range c.in.Index.behind[pool.Key.String()] {
		g := c.in.State.Groups[group]
		name := observed.NodegroupName{Cluster: pool.Nodegroup.ClusterName, Name: g.Tags[observed.TagNodegroup].Value}
		_, found := c.in.State.Nodegroups[name]
		if g.Deleting || found || c.in.State.Absent.Nodegroups[name] || !standsFor(name.Name, pool.Nodegroup.Name) {
			continue
		}
		c.needs.Nodegroups = append(c.needs.Nodegroups, name)
		unseen = true
	}
	return unseen
}

// replace plans what follows where no nodegroup of the pool is what Git wants.
// standing are all that there are, of which the first serves.
func (c nodegroups) replace(w wantNodegroup, standing []observed.Nodegroup, differs []immutable) {
	serving := standing[0]
	if !w.pool.AllowReplace {
		c.refuseImmutable(w, serving, differs)
		return
	}
	name := c.replacementName(w, differs)
	if have, taken := c.in.State.Nodegroups[name]; taken {
		c.conflict(w.pool, step.ManagedNodegroup, name.Name, ownership{why: "it is not the pool's: its tag weir.dev/pool is " + observed.Quote(have.Tags[observed.TagPool])})
		return
	}
	if !c.in.State.Absent.Nodegroups[name] {
		c.needs.Nodegroups = append(c.needs.Nodegroups, name)
		return
	}
	ng, ok := c.newNodegroup(w, name.Name, &serving)
	if !ok {
		return
	}
	later := len(standing) > 1
	why := immutableReason(differs)
	if other := c.replacing(w.pool); other != "" {
		later, why = true, why+"; it waits until the nodegroup of the pool "+other+" is replaced"
	}
	c.leave(w, standing[1:], true, name.Name)
	c.step(w.pool, step.Step{Verb: step.Replace, Resource: step.ManagedNodegroup, Name: name.Name, Reason: why, Instances: int(ng.DesiredSize), Changes: c.replaceChanges(w, serving, ng, differs),
		Later: later, Do: step.CreateNodegroup{Nodegroup: ng}})
	c.leave(w, standing[:1], false, name.Name)
}

// leave plans the end of nodegroups of the pool that another one has replaced, or
// does once it is up.
func (c nodegroups) leave(w wantNodegroup, old []observed.Nodegroup, up bool, by string) {
	why := "it is deleted once " + by + " is ACTIVE"
	if up {
		why = "it is not what Git wants any more"
	}
	for _, n := range old {
		if n.Status == "DELETING" {
			continue
		}
		// EKS refuses to delete a nodegroup that it is still making or changing.
		busy := n.Status == "CREATING" || n.Status == "UPDATING"
		c.step(w.pool, step.Step{Verb: step.Replace, Resource: step.ManagedNodegroup, Name: n.Name, Reason: why,
			Disruptive: n.DesiredSize > 0, Instances: int(n.DesiredSize), Later: !up || busy, Seen: step.SeenNodegroup(n), Do: step.DeleteNodegroup{NodegroupName: n.NodegroupName}})
	}
}

// replacing names another pool of the set in the same cluster that is being
// replaced, "" if there is none: each replacement doubles a pool for a while, so
// there is one at a time. The first pool that asks and is not held is the one that
// goes on.
func (c nodegroups) replacing(pool *intent.Pool) string {
	cluster := pool.Nodegroup.ClusterName
	other := c.others[cluster]
	for i := range c.in.Set.Pools {
		p := &c.in.Set.Pools[i]
		if p.Nodegroup != nil && p.Nodegroup.ClusterName == cluster && len(c.in.nodegroupsOf(p)) > 1 {
			other = p.Key.String()
			break
		}
	}
	switch {
	case other == pool.Key.String():
		return ""
	case other == "":
		c.replaces = c.hold == "" // a held one does not go on
	}
	return other
}

// replacementName is the name of a nodegroup with what EKS cannot change, as Git
// wants it. A name that one of the pool has already, which differs all the same, is
// passed over.
func (c nodegroups) replacementName(w wantNodegroup, differs []immutable) observed.NodegroupName {
	n := w.pool.Nodegroup
	wanted := content.Canonical(map[string]any{
		"role": w.role, "subnets": w.writtenSubnets(), "capacity": n.CapacityType, "ami": n.AMIType, "image": w.hasImage, "types": w.instanceTypes(),
		"disk": n.DiskSize, "access": accessText(w.access), "template": w.version.ref.Name, "differs": len(differs) > 0,
	})
	for salt := int64(0); ; salt++ {
		name := observed.NodegroupName{Cluster: n.ClusterName, Name: replacementBase(n.Name) + "-" + content.ShortHash(wanted, []byte(strconv.FormatInt(salt, 10)))[:6]}
		if have, taken := c.in.State.Nodegroups[name]; !taken || have.Tags[observed.TagPool] != w.pool.Key.String() {
			return name
		}
	}
}

// refuseImmutable says, field by field, what would need a replacement.
func (c nodegroups) refuseImmutable(w wantNodegroup, have observed.Nodegroup, differs []immutable) {
	for _, d := range differs {
		summary := "EKS cannot change " + d.field + " of the nodegroup " + have.Name + " in place (it is " + observed.Quote(d.from) + ", wanted " + observed.Quote(d.to) + ")"
		c.blockf(w.pool, d.path, "nodegroup-immutable", summary,
			"put the old value back, or write the annotation weir.dev/replace: allowed on the pool, which has a new nodegroup made beside it and this one deleted")
	}
}

// failedNodegroup reports a nodegroup that EKS could not make or delete.
func (c nodegroups) failedNodegroup(w wantNodegroup, have observed.Nodegroup) {
	c.note(diag.Error, w.pool, observed.FieldNamed(w.pool, healthText(have.HealthIssues)), "nodegroup-failed", "the nodegroup "+have.Name+" is "+have.Status+": "+healthText(have.HealthIssues),
		cmp.Or(healthHint(have.HealthIssues), "mend the cause")+"; then delete the nodegroup in EKS so that weir can make it anew")
}
