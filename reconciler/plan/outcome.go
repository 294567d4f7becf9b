package plan

import (
	"errors"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// ErrSource is the Err of a report if weir could not read the desired state from Git again. The
// commit of the report is not at fault.
var ErrSource = errors.New("source cannot be read")

// Phase is Cluster API's MachinePool phase.
type Phase string

// Phases, as Cluster API writes them.
const (
	PhasePending      Phase = "Pending"
	PhaseProvisioning Phase = "Provisioning"
	PhaseProvisioned  Phase = "Provisioned"
	PhaseRunning      Phase = "Running"
	PhaseScaling      Phase = "Scaling"
	PhaseScalingUp    Phase = "ScalingUp"
	PhaseScalingDown  Phase = "ScalingDown"
	PhaseDeleting     Phase = "Deleting"
	PhaseFailed       Phase = "Failed"
	PhaseUnknown      Phase = "Unknown"
)

// Condition is a Cluster API condition.
type Condition struct {
	Type     string `json:"type"`
	Status   string `json:"status"` // True, False, Unknown
	Severity string `json:"severity,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Message  string `json:"message,omitempty"`
}

// PoolStatus is a pool's status in the shape of Cluster API's MachinePool status, after fields that
// identify the pool.
type PoolStatus struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Cluster   string          `json:"cluster"`
	Target    string          `json:"target"`
	Kind      intent.PoolKind `json:"kind"`

	Phase               Phase `json:"phase"`
	Replicas            int32 `json:"replicas"`
	ReadyReplicas       int32 `json:"readyReplicas"`
	AvailableReplicas   int32 `json:"availableReplicas"`
	UnavailableReplicas int32 `json:"unavailableReplicas"`
	DesiredReplicas     int32 `json:"desiredReplicas"`
	// MinReplicas and MaxReplicas are the bounds in AWS. Both are 0 if the pool does not exist yet
	// or the group counts in other units than instances.
	MinReplicas    int32    `json:"minReplicas"`
	MaxReplicas    int32    `json:"maxReplicas"`
	ReadyFrom      string   `json:"readyFrom"` // "InService" or "nodes"
	ProviderIDList []string `json:"providerIDList"`
	// NodeRefs lists the nodes of the instances, if weir read the workload cluster.
	NodeRefs []NodeRef `json:"nodeRefs,omitempty"`
	// Instances lists the instances in the pool's groups, including the ones that do not count as its
	// capacity. AWS does not list the instances of a warm pool there.
	Instances []Instance `json:"instances,omitempty"`
	// TemplateVersions lists the versions of the launch template that weir has read.
	TemplateVersions      []VersionNote `json:"templateVersions,omitempty"`
	LaunchTemplateID      string        `json:"launchTemplateID,omitempty"`
	LaunchTemplateVersion string        `json:"launchTemplateVersion,omitempty"`
	BootstrapReady        bool          `json:"bootstrapReady"`
	InfrastructureReady   bool          `json:"infrastructureReady"`
	FailureReason         string        `json:"failureReason,omitempty"`
	FailureMessage        string        `json:"failureMessage,omitempty"`
	// FailureCause identifies why AWS launches no machine or EKS reports a nodegroup as
	// degraded. It stays the same while the messages name different zones, types or
	// machines. It is "" for other failures.
	FailureCause string      `json:"-"`
	Conditions   []Condition `json:"conditions"`

	// Nodegroup is EKS's state of a managed pool, nil while it has no nodegroup.
	Nodegroup *NodegroupStatus `json:"nodegroup,omitempty"`

	// Rollout is set while an instance refresh or nodegroup update is in progress.
	Rollout *RolloutStatus `json:"rollout,omitempty"`
	// LastRollout is the newest instance refresh or nodegroup update, in progress or ended, if this
	// pass has read it.
	LastRollout *RolloutStatus `json:"lastRollout,omitempty"`
	// Draining lists the machines that wait until weir has moved their pods.
	Draining []Draining `json:"draining,omitempty"`
	// Converged reports whether AWS matches Git and nothing is changing.
	Converged bool `json:"converged"`
	// LastSeen is the time at which the pool was in this state, if the last pass could not observe
	// it because its commit does not render or AWS does not answer; zero otherwise.
	LastSeen time.Time `json:"lastSeen,omitzero"`
	// FailedSince is the time when FailureReason was first reported. It is zero if nothing has
	// failed or if nobody records it, as in a command on a directory.
	FailedSince time.Time `json:"failedSince,omitzero"`
}

// Draining is a machine that will end, and waits until its pods are gone.
type Draining struct {
	Instance string `json:"instance"`
	Node     string `json:"node,omitempty"`
	// Since is the start of the drain. At Until the machine ends, even if pods are left.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// PodsLeft is the number of pods that are not gone. Pods lists some of them.
	PodsLeft int           `json:"podsLeft"`
	Pods     []DrainingPod `json:"pods,omitempty"`
	// Why is another reason that keeps the machine.
	Why string `json:"why,omitempty"`
}

// DrainingPod is a pod that is not gone yet, and the reason.
type DrainingPod struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// NodeRef is a reference to a node of the workload cluster.
type NodeRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// RolloutStatus is the progress of a rollout.
type RolloutStatus struct {
	ID            string `json:"id"`
	Status        string `json:"status"`
	Percentage    int32  `json:"percentage"`
	InstancesLeft int32  `json:"instancesLeft"`
	Message       string `json:"message,omitempty"`
	// StartedAt is the start of the rollout, zero if AWS does not give it.
	StartedAt time.Time `json:"startedAt,omitzero"`
	// MinHealthy and MaxHealthy are the percentages of the desired size between which an instance
	// refresh keeps the group. They are absent if it was started without them.
	MinHealthy *int32 `json:"minHealthyPercentage,omitempty"`
	MaxHealthy *int32 `json:"maxHealthyPercentage,omitempty"`
}

// Report contains the actions and findings of one pass over one target.
type Report struct {
	Target   string
	Source   string
	Account  string
	Region   string
	Revision string // full commit hash; empty in path mode
	Subject  string
	Ref      string
	// Seq is Desired.Seq.
	Seq int64 `json:",omitempty"`
	// Touched reports whether the commit changed the target's render, compared with the commit
	// before. It is false for a pass that was due by time alone.
	Touched bool

	Plan     *Plan // nil for none: Diagnostics or Err say why
	Outcomes []step.Outcome
	Pools    []PoolStatus
	// Governed lists the pools of Gates.Rollouts with the facts for a conductor of rollouts.
	Governed []rollout.Pool `json:",omitempty"`
	// LaunchConfigs are the AWSLaunchConfigs of the target, in order.
	LaunchConfigs []LaunchConfigStatus
	// Milestones are the events other than steps.
	Milestones []step.Milestone
	// Diagnostics lists all diagnostics of the pass: render, lookups, plan.
	Diagnostics diag.List
	// Err is a failure outside the user's files: source, credentials, AWS.
	Err error

	StartedAt time.Time
	Duration  time.Duration
	// Suspended reports whether the target is suspended. ReportOnly reports whether its mode is
	// report. weir then plans and never writes.
	Suspended, ReportOnly bool
	// Fallback describes the earlier revision that the target uses because the report's revision
	// cannot be rendered. It is nil if the target uses the report's revision.
	Fallback *Fallback `json:"Holds,omitempty"`
	// FallbackPools maps single pools ("namespace/name") that the followed revision breaks to their
	// fallback.
	FallbackPools map[string]*Fallback `json:"HeldPools,omitempty"`
	// Wanted identifies the desired state of the target in Git and the configuration. Levels
	// contains the answers that its pools used in the pass, each requested at Fresh or later.
	Wanted string
	Levels []model.Level
	Fresh  time.Time
}

// Shown returns the plan for people. For a report without a plan, it returns a plan without steps
// and without a digest, whose diagnostics give the reason.
func (r *Report) Shown() *Plan {
	p := r.Plan
	if p == nil {
		p = &Plan{
			Target: r.Target, Revision: r.Revision, Account: r.Account, Region: r.Region,
			Diagnostics: r.Diagnostics, Secretless: true,
		}
	}
	if r.Err != nil {
		with := *p
		failure := diag.Diagnostic{Severity: diag.Error, Code: "failed", Summary: r.Err.Error()}
		with.Diagnostics = append(diag.List{failure}, p.Diagnostics...)
		p = &with
	}
	return p
}

// Converged reports whether every pool has converged and nothing failed.
func (r *Report) Converged() bool {
	if r.Err != nil || r.Plan == nil || r.Diagnostics.HasErrors() || !r.Plan.Empty() {
		return false
	}
	for _, p := range r.Pools {
		if !p.Converged {
			return false
		}
	}
	return true
}

// Failures returns the outcomes that failed.
func (r *Report) Failures() []step.Outcome {
	var out []step.Outcome
	for _, o := range r.Outcomes {
		if o.Status == step.Failed {
			out = append(out, o)
		}
	}
	return out
}

// FailureRefused is the failure of a pool with a step that AWS refused, and will refuse until
// something changes.
const FailureRefused = "step-refused"

// FailureChanged is the failure of a pool with a step that weir did not send, because the resource
// had changed since the pass observed it.
const FailureChanged = "changed-since-observed"

// NoteRefused reports in a pool's status that AWS refused a step, and when weir tries it again. A
// failure that the plan already found takes precedence.
func NoteRefused(s *PoolStatus, o *step.Outcome) {
	key := s.Namespace + "/" + s.Name
	if s.FailureReason != "" || o.Step.Pool != key && !slices.Contains(o.Step.Pools, key) {
		return
	}
	s.FailureReason = FailureRefused
	who, reason := "AWS refused", "StepRefused"
	if o.Err.Code == observed.CodeChanged {
		s.FailureReason = FailureChanged
		who, reason = "weir held back its request", "ChangedSinceObserved"
	}
	s.FailureMessage = who + " to " + string(o.Step.Verb) + " the " + string(o.Step.Resource) + " " + o.Step.Name + ": " + o.Err.Error() + "; " + o.Lift
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == conditionReady && c.Status != conditionStatus(true) {
			c.Severity, c.Reason, c.Message = "Error", reason, s.FailureMessage
		}
	}
}
