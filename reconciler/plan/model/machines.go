package model

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// InService returns the times since which instances are in service, for pools with minReadySeconds
// or if weir reads nodes. The next pass gets it as Memory.InService. It is never nil.
func InService(in Input) map[string]time.Time {
	out := map[string]time.Time{}
	for i := range in.Set.Pools {
		if pool := &in.Set.Pools[i]; pool.MinReadySeconds > 0 || in.Nodes != nil {
			for _, instance := range in.InstancesOf(pool) {
				if instance.Ready() {
					out[instance.ID] = inService(in.Memory, in.State, in.Now, instance.ID)
				}
			}
		}
	}
	return out
}

// inService returns the time since which an instance has been in service.
func inService(memory Memory, state *observed.State, now time.Time, id string) time.Time {
	if since, seen := memory.InService[id]; seen {
		return since
	}
	if launched := state.Launched[id]; memory.InService == nil && !launched.IsZero() {
		return launched
	}
	return now
}

// InstancesOf returns the instances of a pool: those of its group, or of the groups behind its
// nodegroups. A pool has two nodegroups while one is replaced.
func (in Input) InstancesOf(pool *intent.Pool) []observed.Instance {
	if pool.Group != nil {
		return in.State.Groups[pool.Group.Name].Instances
	}
	if pool.Nodegroup == nil {
		return nil
	}
	var out []observed.Instance
	for _, n := range in.NodegroupsOf(pool) {
		for _, g := range n.GroupNames {
			out = append(out, in.State.Groups[g].Instances...)
		}
	}
	return out
}

// Machine reports whether an instance is ready, and whether it is also available.
func (in Input) Machine(pool *intent.Pool, i observed.Instance) (ready, available bool) {
	since := time.Time{}
	if in.Nodes != nil && in.Nodes.Err == nil {
		node, joined := in.Nodes.ByInstance[i.ID]
		if ready = joined && node.Ready; ready {
			since = node.Since
		}
	} else if ready = i.Ready(); ready && pool.MinReadySeconds > 0 {
		since = inService(in.Memory, in.State, in.Now, i.ID)
	}
	if !ready {
		return false, false
	}
	return true, in.Now.Sub(since) >= time.Duration(pool.MinReadySeconds)*time.Second
}

// Exists reports whether the pool's group or nodegroup exists in AWS.
func (in Input) Exists(pool *intent.Pool) bool {
	if pool.Group != nil {
		_, found := in.State.Groups[pool.Group.Name]
		return found
	}
	return len(in.NodegroupsOf(pool)) > 0
}

// InUse lists the template versions that a group is set to, that a refresh is rolling out, or that
// instances still run. The version of an active refresh comes first.
func (in Input) InUse(g observed.Group) []observed.TemplateRef {
	refs := []observed.TemplateRef{g.Template}
	// AWS already accepted the content of a refresh in progress. A read that does not show its
	// version yet must not make weir cancel its own rollout.
	if r := in.State.Refreshes[g.Name]; r.Active() {
		refs = []observed.TemplateRef{r.Template, g.Template}
	}
	for _, i := range g.Instances {
		if !i.Leaving() && !slices.Contains(refs, i.Template) && len(refs) < maxCandidates {
			refs = append(refs, i.Template)
		}
	}
	return refs
}

// NodegroupInUse lists the template version of a nodegroup, and the version of an update in
// progress, which nobody can stop.
func (in Input) NodegroupInUse(n observed.Nodegroup) []observed.TemplateRef {
	refs := []observed.TemplateRef{n.Template}
	if u := in.State.Updates[n.NodegroupName]; n.Status == "UPDATING" && u.Status == "InProgress" && u.TemplateVersion != "" {
		coming := n.Template
		coming.Version = u.TemplateVersion
		refs = append(refs, coming)
	}
	return refs
}

// GroupOwnership is Owns for a group. A group behind a nodegroup never counts as a pool's own.
func (in Input) GroupOwnership(g observed.Group, wantedBy string) Ownership {
	if t, behind := g.Tags[observed.TagNodegroup]; behind {
		return Ownership{Why: "it is the group behind the EKS nodegroup " + t.Value}
	}
	return ownership(in.Policy, g.Tags, valueOfGroup, wantedBy, in.Fleet.Whole)
}

const (
	// joinsWithin is the time that a machine may be in service without a Ready node before weir
	// reports it.
	joinsWithin = 10 * time.Minute
	// unreadyNamed is the number of machines that a message names.
	unreadyNamed = 3
	// FailureNodes is the failure of a pool whose machines stay without a Ready node.
	FailureNodes = "nodes-not-ready"
)

// Unready describes the pool's machines in service that have no Ready node. The message is empty if
// all have one or weir reads no nodes. late reports whether a machine has been in this state for at
// least 10 minutes.
func (in Input) Unready(pool *intent.Pool) (message string, late bool) {
	if in.Nodes == nil || in.Nodes.Err != nil {
		return "", false
	}
	var named []string
	serving, left := 0, 0
	for _, i := range in.InstancesOf(pool) {
		if !i.Ready() {
			continue
		}
		serving++
		node, joined := in.Nodes.ByInstance[i.ID]
		if joined && node.Ready {
			continue
		}
		left++
		since, text := inService(in.Memory, in.State, in.Now, i.ID), i.ID+" has not joined the cluster"
		if joined {
			text = "the node " + node.Name + " is not Ready"
			if node.Why != "" {
				text += " (" + node.Why + ")"
			}
			if node.Since.After(since) {
				since = node.Since
			}
		}
		late = late || in.Now.Sub(since) >= joinsWithin
		if len(named) < unreadyNamed {
			named = append(named, text)
		}
	}
	if left == 0 {
		return "", false
	}
	if left > len(named) {
		named = append(named, "and more")
	}
	return strconv.Itoa(left) + " of " + strconv.Itoa(serving) + " machines in service have no Ready node: " + strings.Join(named, "; "), late
}

// VersionOf returns the number of the version of template t that a reference means, 0 if the
// reference is to another template.
func VersionOf(t observed.Template, ref observed.TemplateRef) int64 {
	if ref.ID != t.ID && (ref.ID != "" || ref.Name != t.Name) {
		return 0
	}
	switch ref.Version {
	case "$Latest":
		return t.LatestVersion
	case "$Default", "":
		return t.DefaultVersion
	}
	n, err := strconv.ParseInt(ref.Version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// maxCandidates limits the number of versions that weir compares for one pool.
const maxCandidates = 6
