package plan

import (
	"cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/nodegroup"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// phase computes the phase like Cluster API's MachinePool controller: it applies the same rules in
// the same order, and the last matching rule wins. A pool with a fault is Failed, which is still a
// value of Cluster API's enumeration.
func (s *PoolStatus) phase(pool *intent.Pool, failed bool) Phase {
	phase := PhasePending
	if s.BootstrapReady && !s.InfrastructureReady {
		phase = PhaseProvisioning
	}
	if len(s.NodeRefs) > 0 {
		phase = PhaseProvisioned
	}
	if s.InfrastructureReady {
		switch {
		case s.DesiredReplicas == s.ReadyReplicas:
			phase = PhaseRunning
		case pool.ReplicasManagedExternally:
			phase = PhaseScaling
		case s.DesiredReplicas > s.ReadyReplicas:
			phase = PhaseScalingUp
		default:
			phase = PhaseScalingDown
		}
	}
	if failed {
		phase = PhaseFailed
	}
	return phase
}

// Conditions and their reasons have CAPA's names. Reasons that CAPA does not have are weir's
// diagnostic codes.
const (
	conditionReady         = "Ready"
	conditionGroup         = "ASGReady"
	conditionTemplate      = "LaunchTemplateReady"
	conditionAfterTemplate = "PostLaunchTemplateUpdateOperationSuccess"
	conditionRefresh       = "InstanceRefreshStarted"
	conditionNodegroup     = "EKSNodegroupReady"
	conditionRoles         = "IAMNodegroupRolesReady"
	conditionPaused        = "Paused"
)

func conditionStatus(ok bool) string {
	if ok {
		return "True"
	}
	return "False"
}

// conditions returns the conditions of a pool, with ready first. failure is the pool's error, nil
// if it has none.
func (s *PoolStatus) conditions(in model.Input, pool *intent.Pool, nodegroups []observed.Nodegroup, ready Condition, failure *diag.Diagnostic) []Condition {
	out := make([]Condition, 1, 4)
	out[0] = ready
	if pool.Group != nil {
		out = append(out, s.groupCondition(in, pool, failure))
	}
	if pool.Nodegroup != nil {
		out = append(out, s.nodegroupCondition(in, pool, nodegroups, failure))
		role := Condition{Type: conditionRoles, Status: "True"}
		if a := in.Answers[pool.Nodegroup.Role]; pool.Nodegroup.Role.Kind != "" && a.RoleARN == "" {
			role = Condition{Type: conditionRoles, Status: "False", Severity: "Error", Reason: "IAMNodegroupRolesReconciliationFailed", Message: a.Problem}
		}
		out = append(out, role)
	}
	if pool.LaunchTemplate != nil || pool.ForeignTemplate != nil {
		c := Condition{Type: conditionTemplate, Status: conditionStatus(s.LaunchTemplateID != "")}
		if s.LaunchTemplateID == "" {
			c.Status, c.Reason = "Unknown", "LaunchTemplateNotFound"
			if failure != nil {
				c.Status, c.Severity, c.Reason = "False", "Error", "LaunchTemplateReconcileFailed"
			}
		}
		out = append(out, c)
	}
	out = append(out, s.refreshConditions(in, pool)...)
	if pool.Paused {
		out = append(out, Condition{Type: conditionPaused, Status: "True", Reason: "Paused"})
	}
	return out
}

// groupCondition returns the condition about the pool's Auto Scaling group.
func (s *PoolStatus) groupCondition(in model.Input, pool *intent.Pool, failure *diag.Diagnostic) Condition {
	c := Condition{Type: conditionGroup, Status: conditionStatus(s.InfrastructureReady)}
	if s.InfrastructureReady {
		return c
	}
	switch have, found := in.State.Groups[pool.Group.Name]; {
	case failure != nil:
		c.Severity, c.Reason, c.Message = "Error", "ASGProvisionFailed", failure.Summary
	case found && have.Deleting:
		c.Severity, c.Reason = "Info", "ASGDeletionInProgress"
	case !s.BootstrapReady:
		c.Severity, c.Reason = "Info", "WaitingForBootstrapData"
	default:
		c.Status, c.Reason = "Unknown", "ASGNotFound"
	}
	return c
}

// nodegroupCondition returns the condition about the pool's nodegroup. all lists its nodegroups,
// the current one first.
func (s *PoolStatus) nodegroupCondition(in model.Input, pool *intent.Pool, all []observed.Nodegroup, failure *diag.Diagnostic) Condition {
	c := Condition{Type: conditionNodegroup, Status: conditionStatus(s.InfrastructureReady)}
	var n observed.Nodegroup
	if len(all) > 0 {
		n = all[0]
	}
	switch {
	case n.Status == "DEGRADED" || failure != nil && !s.InfrastructureReady:
		c.Status, c.Severity, c.Reason = "False", "Error", "EKSNodegroupReconciliationFailed"
		if len(n.HealthIssues) > 0 {
			c.Message = n.HealthIssues[0].Code + ": " + n.HealthIssues[0].Message
			if hint := nodegroup.IssueHint(n.HealthIssues[0]); hint != "" {
				c.Message += "; " + hint
			}
		} else if failure != nil {
			c.Message = failure.Summary
		}
	case n.Status == "DELETING":
		c.Severity, c.Reason = "Info", "Deleting"
	case !s.InfrastructureReady && !in.State.Clusters[pool.Nodegroup.ClusterName]:
		c.Severity, c.Reason = "Info", "WaitingForEKSControlPlane"
	}
	return c
}

// refreshConditions returns conditions about the newest instance refresh of the pool's group, if
// the pass has read it.
func (s *PoolStatus) refreshConditions(in model.Input, pool *intent.Pool) []Condition {
	if pool.Group == nil {
		return nil
	}
	r := in.State.Refreshes[pool.Group.Name]
	if s.Rollout != nil {
		r.Status = s.Rollout.Status
	}
	switch {
	case r.ID == "":
		return nil
	case r.Active():
		return []Condition{{Type: conditionRefresh, Status: "True", Reason: r.Status, Message: r.Reason}}
	case r.Failed():
		return []Condition{{Type: conditionAfterTemplate, Status: "False", Severity: "Error", Reason: "PostLaunchTemplateUpdateOperationFailed",
			Message: r.Status + ": " + cmp.Or(r.Reason, "AWS gives no reason")}}
	}
	return []Condition{{Type: conditionAfterTemplate, Status: "True"}}
}
