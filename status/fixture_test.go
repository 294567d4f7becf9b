package status

import (
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// noon is when the fixtures happen.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

const (
	shaOld = "9c1f0d2b7a6e45d8a1b2c3d4e5f60718293a4b5c"
	shaNew = "4be91a7730c2d9f1e8a7b6c5d4e3f2a1908f7e6d"
)

type poolOption func(*plan.PoolStatus)

func pool(target, name string, opts ...poolOption) plan.PoolStatus {
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
		p.Instances = append(p.Instances, plan.InstanceCount{
			TemplateVersion: "4", Zone: "eu-central-1" + string("abc"[i%3]), Type: "c7g.large", State: "InService", Health: "Healthy", Count: 1,
		})
	}
	return p
}

func rolling(percent, left int32) poolOption {
	return func(p *plan.PoolStatus) {
		p.Phase, p.Converged, p.ReadyReplicas = plan.PhaseScalingUp, false, p.DesiredReplicas-1
		p.Rollout = &plan.RolloutStatus{ID: "08b91cf7-8fa6-48af-b6a6-d227f40f1b9b", Status: "InProgress", Percentage: percent, InstancesLeft: left}
	}
}

func failed(reason, message string) poolOption {
	return func(p *plan.PoolStatus) {
		p.Phase, p.Converged, p.FailureReason, p.FailureMessage = plan.PhaseFailed, false, reason, message
	}
}

func sized(ready, desired int32) poolOption {
	return func(p *plan.PoolStatus) { p.Replicas, p.ReadyReplicas, p.DesiredReplicas = ready, ready, desired }
}

func managed(p *plan.PoolStatus) { p.Kind = intent.NodegroupPool }

func unconverged(phase plan.Phase) poolOption {
	return func(p *plan.PoolStatus) { p.Phase, p.Converged = phase, false }
}

// report is a pass over target that has nothing to do.
func report(target string, pools ...plan.PoolStatus) *plan.Report {
	return &plan.Report{
		Target: target, Source: "fleet", Account: "111122223333", Region: "eu-central-1", Revision: shaNew,
		Subject: "web: c7g instances, three zones", Ref: "branch main",
		Plan:  &plan.Plan{Target: target, Revision: shaNew, Account: "111122223333", Region: "eu-central-1"},
		Pools: pools, StartedAt: noon.Add(-12 * time.Second), Duration: 420 * time.Millisecond,
	}
}

// with adds steps to a report, as planned and as ended with status.
func with(r *plan.Report, status step.OutcomeStatus, steps ...step.Step) *plan.Report {
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

func stepFor(verb step.Verb, resource step.Resource, pool, name string) step.Step {
	return step.Step{Verb: verb, Resource: resource, Pool: pool, Name: name, Reason: "the manifests changed"}
}

func unknownField() diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Error, Code: "unknown-field", Summary: "awsLaunchTemplate.instanceTyp: unknown field",
		Detail:   "did you mean instanceType?",
		Position: diag.Position{File: "overlays/staging/pool.yaml", Line: 12, Column: 5},
		Object:   "AWSMachinePool default/web", Field: "spec.awsLaunchTemplate.instanceTyp",
		Related: []diag.Related{{Position: diag.Position{File: "base/pool.yaml", Line: 20}, Message: "the pool is declared here"}},
	}
}

func rolloutSteps() []step.Step {
	version := stepFor(step.Update, step.LaunchTemplate, "default/web", "prod-us-web")
	version.Reason, version.Do = "the instance type changed: version 5", step.CreateLaunchTemplateVersion{}
	version.Changes = []step.Change{
		{Field: "awsLaunchTemplate.instanceType", From: "m6i.large", To: "c7g.large", Origin: &diag.Position{File: "overlays/prod-us/web.yaml", Line: 9, Column: 21}},
		{Field: "awsLaunchTemplate.ami.id", From: "ami-0aaaaaaaaaaaaaaa1", To: "ami-0bbbbbbbbbbbbbbb2"},
		{Field: "awsLaunchTemplate.rootVolume", To: map[string]any{"size": 64, "type": "gp3"}, Origin: &diag.Position{File: "base/pool.yaml", Line: 31}},
	}
	refresh := stepFor(step.Rollout, step.AutoScalingGroup, "default/web", "prod-us-web")
	refresh.Reason, refresh.Disruptive, refresh.Instances = "8 instances run version 4", true, 8
	refresh.Do = step.StartRefresh{}
	return []step.Step{version, refresh}
}

// fleet is a board with a bit of everything.
func fleet() *Board {
	b := NewBoard(BoardOptions{Instance: "production", Now: func() time.Time { return noon }})
	var targets []Target
	for _, name := range []string{"prod-eu", "prod-us", "staging", "dev", "edge-1", "platform-observability-eu-central-1-blue-green"} {
		targets = append(targets, Target{Name: name, Source: "fleet", Path: "overlays/" + name, Account: "111122223333", Region: "eu-central-1"})
	}
	b.Configure([]Source{{Name: "fleet", URL: "https://bot:hunter2@git.example.com/platform/fleet.git", Ref: "branch main"}}, targets)
	b.Source(Source{
		Name: "fleet", URL: "https://bot:hunter2@git.example.com/platform/fleet.git", Ref: "branch main",
		Revision: shaNew, Subject: "web: c7g instances, three zones", FetchedAt: noon.Add(-9 * time.Second),
	})
	ctx := context.Background()
	old := report("prod-eu", pool("prod-eu", "web"), pool("prod-eu", "workers", sized(12, 12)), pool("prod-eu", "gpu", managed, sized(2, 2)))
	old.StartedAt, old.Revision = noon.Add(-3*time.Hour), shaOld
	b.Report(ctx, old)
	b.Report(ctx, report("prod-eu", old.Pools...))
	b.Due("prod-eu", noon.Add(48*time.Second))

	b.Report(ctx, report("prod-us", pool("prod-us", "web", sized(8, 8)), pool("prod-us", "batch-spot", sized(20, 20))))
	b.Report(ctx, with(report("prod-us", pool("prod-us", "web", sized(8, 8), rolling(0, 8)), pool("prod-us", "batch-spot", sized(20, 20))), step.Done, rolloutSteps()...))
	b.Report(ctx, report("prod-us", pool("prod-us", "web", sized(8, 8), rolling(37, 5)), pool("prod-us", "batch-spot", sized(20, 20))))
	b.Due("prod-us", noon.Add(5*time.Second))

	b.Report(ctx, report("staging", pool("staging", "web", sized(2, 2))))
	broken := report("staging")
	broken.Plan, broken.Diagnostics = nil, diag.List{unknownField(), {
		Severity: diag.Warning, Code: "default-network", Summary: "the default VPC is used",
		Position: diag.Position{File: "base/cluster.yaml", Line: 3},
	}}
	b.Report(ctx, broken)

	dev := report("dev", pool("dev", "web", unconverged(plan.PhaseRunning)), pool("dev", "workers", sized(1, 1)))
	dev.Suspended = true
	held := stepFor(step.Update, step.AutoScalingGroup, "default/web", "dev-web")
	held.Held, held.Changes = step.HeldSuspended, []step.Change{{Field: "maxSize", From: 7, To: 5, Origin: &diag.Position{File: "overlays/dev/web.yaml", Line: 14, Column: 12}}}
	b.Report(ctx, with(dev, step.Held, held))

	long := report("platform-observability-eu-central-1-blue-green",
		pool("platform-observability-eu-central-1-blue-green", "prometheus-long-term-storage-ingesters-multi-zone-arm64",
			failed("rollout-failed", "the instance refresh 1f2e3d4c of platform-observability-eu-central-1-blue-green-prometheus-long-term-storage ended as Failed: instances did not pass the health check")))
	long.Err = errors.New("autoscaling:DescribeInstanceRefreshes: AccessDenied: User arn:aws:sts::111122223333:assumed-role/weir/weir-production is not authorized (request 5f8c6d2e-0000)")
	b.Report(ctx, long)
	return b
}
