package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// ready is the condition Ready of a pool, and the only code that decides whether the
// pool has converged: AWS holds all that Git asks for, and the machines are available.
// Everything else that speaks of convergence goes by it: reports and with them page,
// commit statuses, metrics and the targets that wait for this one.
func (f findings) ready(in basis.Input, s *PoolStatus, pool *intent.Pool, moving bool, failure *diag.Diagnostic) Condition {
	c := Condition{Type: conditionReady, Status: conditionStatus(false), Severity: "Info"}
	key := pool.Key.String()
	var left basis.Outstanding
	outstanding := f.of(pool).Outstanding
	open := outstanding != nil
	if open {
		left = *outstanding
	}
	unready, late := in.Unready(pool)
	unlaunched, cause := launch.Failure(in, pool)
	switch {
	case failure != nil:
		c.Severity, c.Reason, c.Message = "Error", failure.Code, failure.Located()
		return c
	case f.waits[key] != "":
		c.Reason, c.Message = reasonControlPlane, f.waits[key]
	case f.pending[key]:
		c.Reason = "ChangesPlanned"
	case unready != "" && s.Rollout == nil && s.ReadyReplicas < s.DesiredReplicas:
		c.Reason, c.Message = ReasonNodesNotReady, unready
		if late {
			c.Severity, s.FailureReason, s.FailureMessage = "Warning", basis.FailureNodes, unready
		}
	case unlaunched != "":
		c.Severity, c.Reason = "Warning", reasonLaunchFailed
	case !moving && open && left.Reason == ReasonHeld: // also where what is left is the group itself
		c.Severity, c.Reason, c.Message = left.Severity, left.Reason, left.Message
	case !s.InfrastructureReady, moving:
		c.Reason = ReasonInProgress
		if text := launch.Pending(in, pool); text != "" {
			c.Reason, c.Message = launch.ReasonPending, text
		} else if s.Nodegroup != nil && len(s.Nodegroup.Health) > 0 && left.Failure == "" {
			c.Message = s.Nodegroup.healthText()
		} else if s.Nodegroup != nil && s.Rollout != nil && s.Rollout.Message == "VersionUpdate" {
			c.Message = "EKS replaces its machines, up to " + strconv.Itoa(int(s.DesiredReplicas)) + ", and nobody can cancel that"
		}
	case open:
		c.Severity, c.Reason, c.Message = left.Severity, left.Reason, left.Message
	case s.ReadyReplicas < s.DesiredReplicas:
		c.Reason = ReasonInProgress
	case s.AvailableReplicas < s.DesiredReplicas:
		c.Reason = ReasonMinReady
		c.Message = strconv.Itoa(int(s.UnavailableReplicas)) + " of " + strconv.Itoa(int(s.DesiredReplicas)) + " machines have not been ready for minReadySeconds, which is " + strconv.Itoa(int(pool.MinReadySeconds))
	case in.Earlier(key) != nil: // Git's newest word is not known
		c.Severity, c.Reason, c.Message = "Warning", ReasonHeld, "held to "+short(in.Earlier(key).Revision)+", and as that says; the followed commit cannot be rendered: "+in.Earlier(key).Why
	default:
		return Condition{Type: conditionReady, Status: conditionStatus(true)}
	}
	// The report names failures beside whatever else is to be done.
	s.failsBeside(&c, launch.FailureLaunch, cause, unlaunched)
	if left.Failure != "" {
		s.failsBeside(&c, left.Failure, left.Cause, left.Message)
	}
	if pool.Paused {
		c.Severity, c.Reason = "Info", "Paused"
	}
	return c
}

// failsBeside adds a failure to the condition Ready; the pool's own is the first.
func (s *PoolStatus) failsBeside(c *Condition, reason, cause, text string) {
	if text == "" {
		return
	}
	if s.FailureReason == "" {
		s.FailureReason, s.FailureCause, s.FailureMessage = reason, cause, text
	}
	if c.Message != text {
		c.Message = strings.TrimPrefix(c.Message+"; "+text, "; ")
	}
}

// Reasons of the condition Ready that others go by.
const (
	// ReasonInProgress says that machines or what they come from are on their way.
	ReasonInProgress   = "InProgress"
	reasonControlPlane = "WaitingForControlPlane"
	reasonLaunchFailed = "LaunchFailed"
	// ReasonMinReady says that the machines are ready, and have to be for some time.
	ReasonMinReady = "WaitingForAvailableReplicas"
	// ReasonNodesNotReady says that machines in service have no Ready node.
	ReasonNodesNotReady = "NodesNotReady"
)

// Ready is the pool's condition Ready.
func (s *PoolStatus) Ready() Condition {
	if i := slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == conditionReady }); i >= 0 {
		return s.Conditions[i]
	}
	return Condition{Type: conditionReady, Status: "Unknown"}
}

// Rests reports whether nothing brings the pool nearer to what Git says until
// somebody has looked at it.
func (s *PoolStatus) Rests() bool { return s.Ready().Severity == "Warning" }
