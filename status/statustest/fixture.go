// Package statustest provides pools, reports, pull requests and a forge for the tests of status packages.
package statustest

import (
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Noon is the time in the fixtures.
var Noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const (
	ShaOld = "9c1f0d2b7a6e45d8a1b2c3d4e5f60718293a4b5c"
	ShaNew = "4be91a7730c2d9f1e8a7b6c5d4e3f2a1908f7e6d"
)

type PoolOption func(*plan.PoolStatus)

func Pool(target, name string, opts ...PoolOption) plan.PoolStatus {
	p := plan.PoolStatus{
		Name: name, Namespace: "default", Cluster: target, Target: target, Kind: intent.GroupPool,
		Phase: plan.PhaseRunning, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, DesiredReplicas: 3,
		ReadyFrom: "InService", ProviderIDList: []string{"aws:///eu-central-1a/i-0a1b2c3d4e5f60718"},
		LaunchTemplateID: "lt-0123456789abcdef0", LaunchTemplateVersion: "4",
		BootstrapReady: true, InfrastructureReady: true, Converged: true,
		Conditions: []plan.Condition{{Type: "Ready", Status: "True"}},
	}
	for _, o := range opts {
		o(&p)
	}
	p.MinReplicas, p.MaxReplicas = 1, p.DesiredReplicas+4
	for i := range p.DesiredReplicas {
		p.Instances = append(p.Instances, plan.Instance{
			ID: fmt.Sprintf("i-0a1b2c3d4e5f6%04x", 0x0718+i), TemplateVersion: "4", Zone: "eu-central-1" + string("abc"[i%3]), Type: "c7g.large", State: "InService", Health: "Healthy",
		})
	}
	return p
}

func Rolling(percent, left int32) PoolOption {
	return func(p *plan.PoolStatus) {
		p.Phase, p.Converged, p.ReadyReplicas = plan.PhaseScalingUp, false, p.DesiredReplicas-1
		p.Rollout = &plan.RolloutStatus{ID: "08b91cf7-8fa6-48af-b6a6-d227f40f1b9b", Status: "InProgress", Percentage: percent, InstancesLeft: left}
	}
}

func Failed(reason, message string) PoolOption {
	return func(p *plan.PoolStatus) {
		p.Phase, p.Converged, p.FailureReason, p.FailureMessage = plan.PhaseFailed, false, reason, message
	}
}

func Sized(ready, desired int32) PoolOption {
	return func(p *plan.PoolStatus) { p.Replicas, p.ReadyReplicas, p.DesiredReplicas = ready, ready, desired }
}

func Managed(p *plan.PoolStatus) { p.Kind = intent.NodegroupPool }

func Unconverged(phase plan.Phase) PoolOption {
	return func(p *plan.PoolStatus) { p.Phase, p.Converged = phase, false }
}

// Report returns a report of target without steps.
func Report(target string, pools ...plan.PoolStatus) *plan.Report {
	return &plan.Report{
		Target: target, Source: "fleet", Account: "111122223333", Region: "eu-central-1", Revision: ShaNew,
		Subject: "web: c7g instances, three zones", Ref: "branch main",
		Plan:  &plan.Plan{Target: target, Revision: ShaNew, Account: "111122223333", Region: "eu-central-1"},
		Pools: pools, StartedAt: Noon.Add(-12 * time.Second), Duration: 420 * time.Millisecond,
	}
}

// With adds steps to a report, both to its plan and to its outcomes with status.
func With(r *plan.Report, status step.OutcomeStatus, steps ...step.Step) *plan.Report {
	for _, s := range steps {
		r.Plan.Steps = append(r.Plan.Steps, s)
		o := step.Outcome{Step: s, Status: status, Duration: 180 * time.Millisecond}
		if status == step.Failed {
			o.Err = &observed.Error{
				Kind: observed.Denied, Service: "autoscaling", Operation: "CreateAutoScalingGroup", Code: "AccessDenied",
				Message: "not authorized to perform: autoscaling:CreateAutoScalingGroup", RequestID: "5f8c6d2e",
			}
		}
		r.Outcomes = append(r.Outcomes, o)
	}
	return r
}

func StepFor(verb step.Verb, resource step.Resource, pool, name string) step.Step {
	return step.Step{Verb: verb, Resource: resource, Pool: pool, Name: name, Reason: "the manifests changed"}
}

func UnknownField() diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Error, Code: "unknown-field", Summary: "awsLaunchTemplate.instanceTyp: unknown field",
		Detail:   "did you mean instanceType?",
		Position: diag.Position{File: "overlays/staging/pool.yaml", Line: 12, Column: 5},
		Object:   "AWSMachinePool default/web", Field: "spec.awsLaunchTemplate.instanceTyp",
		Related: []diag.Related{{Position: diag.Position{File: "base/pool.yaml", Line: 20}, Message: "the pool is declared here"}},
	}
}

func RolloutSteps() []step.Step {
	version := StepFor(step.Update, step.LaunchTemplate, "default/web", "prod-us-web")
	version.Reason, version.Do = "the instance type changed: version 5", step.CreateLaunchTemplateVersion{}
	version.Changes = []step.Change{
		{Field: "awsLaunchTemplate.instanceType", From: "m6i.large", To: "c7g.large", Origin: &diag.Position{File: "overlays/prod-us/web.yaml", Line: 9, Column: 21}},
		{Field: "awsLaunchTemplate.ami.id", From: "ami-0aaaaaaaaaaaaaaa1", To: "ami-0bbbbbbbbbbbbbbb2"},
		{Field: "awsLaunchTemplate.rootVolume", To: map[string]any{"size": 64, "type": "gp3"}, Origin: &diag.Position{File: "base/pool.yaml", Line: 31}},
	}
	refresh := StepFor(step.Rollout, step.AutoScalingGroup, "default/web", "prod-us-web")
	refresh.Reason, refresh.Disruptive, refresh.Instances = "8 instances run version 4", true, 8
	refresh.Do = step.StartRefresh{}
	return []step.Step{version, refresh}
}
