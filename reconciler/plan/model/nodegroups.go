package model

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// ClusterOf returns AWS's answer about the EKS cluster that a pool's machines join, nil if it is no
// EKS cluster or unknown.
func (in Input) ClusterOf(pool *intent.Pool) *observed.EKSCluster {
	asked := pool.ControlPlane
	if pool.Nodegroup != nil {
		asked = pool.Nodegroup.Cluster
	}
	return in.Answers[asked].Cluster
}

// BeingMade reports that EKS is still creating the pool's cluster, "" if it is not.
func (in Input) BeingMade(pool *intent.Pool) string {
	cluster := in.ClusterOf(pool)
	if cluster == nil || cluster.Status != "CREATING" && cluster.Status != "PENDING" {
		return ""
	}
	return "the EKS cluster " + cluster.Name + " is " + cluster.Status
}

// How a nodegroup is replaced: if EKS cannot change a field in place, weir creates a second
// nodegroup under a name of its own. Once the new one is ACTIVE, weir deletes the old one, and EKS
// drains its nodes. AWS's state decides which of the two a pass does: the nodegroup that matches
// Git is the pool's, and weir deletes the other nodegroups that carry the pool's tag. So a
// replacement continues after a crash, and reverses if Git does.

// maxNodegroupName is EKS's limit for a nodegroup's name.
const maxNodegroupName = 63

// replacementSuffix matches the end of a replacement's name, after the name in Git.
var replacementSuffix = lazyregexp.New(`^-[0-9a-f]{6}$`)

// ReplacementBase returns the name in Git, truncated so that a suffix fits.
func ReplacementBase(name string) string {
	return name[:min(len(name), maxNodegroupName-len("-000000"))]
}

// StandsFor reports whether a nodegroup has the name in Git or the name of a replacement for it.
func StandsFor(name, wanted string) bool {
	suffix, ok := strings.CutPrefix(name, ReplacementBase(wanted))
	return name == wanted || ok && replacementSuffix.MatchString(suffix)
}

// NodegroupRank orders the nodegroups of a pool: serving nodegroups come first.
func NodegroupRank(n observed.Nodegroup) int {
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

// NodegroupsOf returns the nodegroups of a pool, by the pool's tag: serving nodegroups first, then
// by age. If none carries that tag and the instance's tag, it returns the nodegroup that has the
// wanted name.
func (in Input) NodegroupsOf(pool *intent.Pool) []observed.Nodegroup {
	n := pool.Nodegroup
	index := in.Index
	if index == nil {
		index = NewIndex(in.State)
	}
	var ours, others []observed.Nodegroup
	for _, name := range index.ofPool[pool.Key.String()] {
		switch have := in.State.Nodegroups[name]; {
		case name.Cluster != n.ClusterName || !StandsFor(name.Name, n.Name) || namedInGit(in.Fleet, name, n.Name):
		case have.Tags[observed.TagOwner] == in.Policy.Instance:
			ours = append(ours, have)
		default:
			others = append(others, have)
		}
	}
	if len(ours) == 0 { // a MachinePool that was renamed
		for _, name := range index.Replacements[observed.NodegroupName{Cluster: n.ClusterName, Name: ReplacementBase(n.Name)}] {
			if have := in.State.Nodegroups[name]; have.Tags[observed.TagOwner] == in.Policy.Instance && in.Pool(have.Tags[observed.TagPool]) == nil && !namedInGit(in.Fleet, name, n.Name) {
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
		if d := NodegroupRank(a) - NodegroupRank(b); d != 0 {
			return d
		}
		if d := a.CreatedAt.Compare(b.CreatedAt); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return ours
}

// namedInGit reports whether Git gives the nodegroup's name to another pool. It is then no
// replacement, even if its name looks like one.
func namedInGit(fleet Fleet, name observed.NodegroupName, wanted string) bool {
	_, named := fleet.Wanted[Claim{Resource: step.ManagedNodegroup, Name: name.Name, Cluster: name.Cluster}]
	return named && name.Name != wanted
}

// Pool returns the pool of the target's render with the key, nil for none.
func (in Input) Pool(key string) *intent.Pool {
	if in.Set == nil {
		return nil
	}
	return in.Set.Pool(key)
}

// CutSuffix splits the suffix of a replacement from a name.
func CutSuffix(name string) (base, suffix string, ok bool) {
	at := len(name) - len("-000000")
	if at <= 0 || !replacementSuffix.MatchString(name[at:]) {
		return name, "", false
	}
	return name[:at], name[at:], true
}

// MinorOf returns the minor version of "1.31" or "v1.31.2", -1 if it has none.
func MinorOf(version string) int {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 {
		return -1
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		return -1
	}
	return n
}
