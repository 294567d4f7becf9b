package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// readiness is the state of a pool relative to Git. It alone decides whether the pool has
// converged: AWS matches Git, and the machines are available. Reports use it, and through them the
// page, commit statuses, metrics and the targets that wait for this one.
type readiness string

const (
	withError          readiness = "an error concerns it"
	awaitsControlPlane readiness = "it waits for its control plane"
	changesPlanned     readiness = "steps are planned"
	nodesNotReady      readiness = "machines in service have no Ready node"
	launchFailed       readiness = "AWS cannot launch its machines"
	heldBack           readiness = "it is held to an earlier revision, and a part of that revision is missing in AWS"
	inProgress         readiness = "machines, or what they come from, are on their way"
	outstanding        readiness = "nothing is planned, and AWS does not have everything that Git asks for"
	machinesMissing    readiness = "fewer machines are ready than wanted"
	settling           readiness = "the machines have not been ready for minReadySeconds"
	heldToEarlier      readiness = "it is as an earlier revision says, to which it is held"
	converged          readiness = "AWS has everything that Git asks for, and the machines are available"
)

// readinessFacts contains the facts that decide the readiness of a pool.
type readinessFacts struct {
	failed, waits, pending, unready, unlaunched bool
	// open reports whether something is outstanding, and held whether the reason is that the pool
	// uses an earlier revision.
	open, held bool
	// exists reports whether the group or nodegroup exists, moving whether it is changing, and
	// rolls whether a rollout is in progress.
	exists, moving, rolls bool
	// earlier reports whether the pool uses an earlier revision.
	earlier                   bool
	desired, ready, available int32
}

// readiness returns the first state that matches the facts.
func (f readinessFacts) readiness() readiness {
	switch {
	case f.failed:
		return withError
	case f.waits:
		return awaitsControlPlane
	case f.pending:
		return changesPlanned
	case f.unready && !f.rolls && f.ready < f.desired:
		return nodesNotReady
	case f.unlaunched:
		return launchFailed
	case !f.moving && f.held: // even if the missing part is the group itself
		return heldBack
	case !f.exists, f.moving:
		return inProgress
	case f.open:
		return outstanding
	case f.ready < f.desired:
		return machinesMissing
	case f.available < f.desired:
		return settling
	case f.earlier: // the newest desired state is unknown
		return heldToEarlier
	}
	return converged
}

// ready returns the condition Ready of a pool.
func (f findings) ready(in model.Input, s *PoolStatus, pool *intent.Pool, moving bool, failure *diag.Diagnostic) Condition {
	key := pool.Key.String()
	var left model.Outstanding
	open := f.of(pool).Outstanding
	if open != nil {
		left = *open
	}
	unready, late := in.Unready(pool)
	unlaunched, cause := launch.Failure(in, pool)
	is := readinessFacts{
		failed: failure != nil, waits: f.waits[key] != "", pending: f.pending[key], unready: unready != "", unlaunched: unlaunched != "",
		open: open != nil, held: left.Reason == ReasonHeld, exists: s.InfrastructureReady, moving: moving, rolls: s.Rollout != nil,
		earlier: in.Earlier(key) != nil, desired: s.DesiredReplicas, ready: s.ReadyReplicas, available: s.AvailableReplicas,
	}.readiness()
	c := Condition{Type: conditionReady, Status: conditionStatus(false), Severity: "Info"}
	switch is {
	case converged:
		return Condition{Type: conditionReady, Status: conditionStatus(true)}
	case withError:
		c.Severity, c.Reason, c.Message = "Error", failure.Code, failure.Located()
		return c
	case awaitsControlPlane:
		c.Reason, c.Message = reasonControlPlane, f.waits[key]
	case changesPlanned:
		c.Reason = "ChangesPlanned"
	case nodesNotReady:
		c.Reason, c.Message = ReasonNodesNotReady, unready
		if late {
			c.Severity, s.FailureReason, s.FailureMessage = "Warning", model.FailureNodes, unready
		}
	case launchFailed:
		c.Severity, c.Reason = "Warning", reasonLaunchFailed
	case heldBack, outstanding:
		c.Severity, c.Reason, c.Message = left.Severity, left.Reason, left.Message
	case inProgress:
		c.Reason, c.Message = s.progress(in, pool, left)
	case machinesMissing:
		c.Reason = ReasonInProgress
	case settling:
		c.Reason = ReasonMinReady
		c.Message = strconv.Itoa(int(s.UnavailableReplicas)) + " of " + strconv.Itoa(int(s.DesiredReplicas)) + " machines have not been ready for minReadySeconds, which is " + strconv.Itoa(int(pool.MinReadySeconds))
	case heldToEarlier:
		c.Severity, c.Reason, c.Message = "Warning", ReasonHeld, "held to "+rollout.ShortRevision(in.Earlier(key).Revision)+", and as that says; the followed commit cannot be rendered: "+in.Earlier(key).Why
	}
	// Failures are reported in addition to the state above.
	s.failsBeside(&c, launch.FailureLaunch, cause, unlaunched)
	if left.Failure != "" {
		s.failsBeside(&c, left.Failure, left.Cause, left.Message)
	}
	if pool.Paused {
		c.Severity, c.Reason = "Info", "Paused"
	}
	return c
}

// progress describes the changes that AWS has not finished yet.
func (s *PoolStatus) progress(in model.Input, pool *intent.Pool, left model.Outstanding) (reason, message string) {
	text, n := launch.PendingReason(in, pool), s.Nodegroup
	switch {
	case text != "":
		return launch.ReasonPending, text
	case n != nil && len(n.Health) > 0 && left.Failure == "":
		return ReasonInProgress, n.healthText()
	case n != nil && s.Rollout != nil && s.Rollout.Message == "VersionUpdate":
		return ReasonInProgress, "EKS replaces its machines, up to " + strconv.Itoa(int(s.DesiredReplicas)) + ", and nobody can cancel that"
	}
	return ReasonInProgress, ""
}

// failsBeside adds a failure to the condition Ready. The first failure of the pool becomes its
// FailureReason.
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

// Reasons of the condition Ready on which other programs rely.
const (
	// ReasonInProgress is the reason while machines or the resources behind them are changing.
	ReasonInProgress   = "InProgress"
	reasonControlPlane = "WaitingForControlPlane"
	reasonLaunchFailed = "LaunchFailed"
	// ReasonMinReady is the reason while ready machines have not been ready for minReadySeconds.
	ReasonMinReady = "WaitingForAvailableReplicas"
	// ReasonNodesNotReady is the reason if machines in service have no Ready node.
	ReasonNodesNotReady = "NodesNotReady"
)

// Ready returns the pool's condition Ready.
func (s *PoolStatus) Ready() Condition {
	if i := slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == conditionReady }); i >= 0 {
		return s.Conditions[i]
	}
	return Condition{Type: conditionReady, Status: "Unknown"}
}

// Rests reports whether the pool makes no progress until a person acts.
func (s *PoolStatus) Rests() bool { return s.Ready().Severity == "Warning" }
