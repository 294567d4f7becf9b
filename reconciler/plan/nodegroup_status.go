package plan

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/nodegroup"
	"github.com/weir-gitops/weir/render/intent"
)

// NodegroupStatus is EKS's state of a pool's nodegroup.
type NodegroupStatus struct {
	// Name differs from the one in Git if the nodegroup was replaced.
	Name           string `json:"name"`
	Status         string `json:"status"`
	Version        string `json:"version,omitempty"`
	ReleaseVersion string `json:"releaseVersion,omitempty"`
	// Replaces lists the nodegroups that weir deletes once this one is ACTIVE.
	Replaces []string             `json:"replaces,omitempty"`
	Health   []NodegroupIssueNote `json:"health,omitempty"`
}

// NodegroupIssueNote is a health issue with a hint how to fix it.
type NodegroupIssueNote struct {
	Code        string   `json:"code"`
	Message     string   `json:"message,omitempty"`
	ResourceIDs []string `json:"resourceIDs,omitempty"`
	// Hint is empty for a code that weir does not know.
	Hint string `json:"hint,omitempty"`
}

// nodegroupsFor returns the nodegroups of a pool for its status. The first is the nodegroup that
// matches Git, or else the serving one.
func nodegroupsFor(in model.Input, pool *intent.Pool, matches observed.NodegroupName) []observed.Nodegroup {
	if pool.Nodegroup == nil {
		return nil
	}
	all := in.NodegroupsOf(pool)
	if i := slices.IndexFunc(all, func(n observed.Nodegroup) bool { return n.NodegroupName == matches }); i > 0 {
		have := all[i]
		all = slices.Insert(slices.Delete(all, i, i+1), 0, have)
	}
	return all
}

func nodegroupStatus(all []observed.Nodegroup) *NodegroupStatus {
	if len(all) == 0 {
		return nil
	}
	n := all[0]
	out := &NodegroupStatus{Name: n.Name, Status: n.Status, Version: n.Version, ReleaseVersion: n.ReleaseVersion}
	for _, old := range all[1:] {
		out.Replaces = append(out.Replaces, old.Name)
	}
	for _, i := range n.HealthIssues {
		out.Health = append(out.Health, NodegroupIssueNote{Code: i.Code, Message: i.Message, ResourceIDs: i.ResourceIDs, Hint: nodegroup.IssueHint(i)})
	}
	return out
}

// healthText describes the first health issue.
func (n *NodegroupStatus) healthText() string {
	text := "EKS says of the nodegroup " + n.Name + ": " + n.Health[0].Code
	for _, more := range []string{n.Health[0].Message, n.Health[0].Hint} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}
