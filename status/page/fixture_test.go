package page

import (
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/statustest"
)

func testBoard(targets ...string) *current.State {
	b := current.New(current.Options{Instance: "weir", Now: func() time.Time { return statustest.Noon }})
	var list []current.Target
	for _, name := range targets {
		list = append(list, current.Target{Name: name, Source: "fleet"})
	}
	b.Configure([]current.Source{{Name: "fleet", URL: "https://bot:hunter2@git.example.com/a/b", Ref: "branch main"}}, list)
	return b
}

// fleet is the state of a fleet with a bit of everything.
func fleet() *current.State {
	b := current.New(current.Options{Instance: "production", Now: func() time.Time { return statustest.Noon }})
	var targets []current.Target
	for _, name := range []string{"prod-eu", "prod-us", "staging", "dev", "edge-1", "platform-observability-eu-central-1-blue-green"} {
		targets = append(targets, current.Target{Name: name, Source: "fleet", Path: "overlays/" + name, Account: "111122223333", Region: "eu-central-1"})
	}
	b.Configure([]current.Source{{Name: "fleet", URL: "https://bot:hunter2@git.example.com/platform/fleet.git", Ref: "branch main"}}, targets)
	b.Sources.Update(current.Source{
		Name: "fleet", URL: "https://bot:hunter2@git.example.com/platform/fleet.git", Ref: "branch main",
		Revision: statustest.ShaNew, Subject: "web: c7g instances, three zones", FetchedAt: statustest.Noon.Add(-9 * time.Second),
	})
	ctx := context.Background()
	old := statustest.Report("prod-eu", statustest.Pool("prod-eu", "web"), statustest.Pool("prod-eu", "workers", statustest.Sized(12, 12)), statustest.Pool("prod-eu", "gpu", statustest.Managed, statustest.Sized(2, 2)))
	old.StartedAt, old.Revision = statustest.Noon.Add(-3*time.Hour), statustest.ShaOld
	b.Targets.Report(ctx, old)
	b.Targets.Report(ctx, statustest.Report("prod-eu", old.Pools...))
	b.Targets.SetDue("prod-eu", statustest.Noon.Add(48*time.Second))

	b.Targets.Report(ctx, statustest.Report("prod-us", statustest.Pool("prod-us", "web", statustest.Sized(8, 8)), statustest.Pool("prod-us", "batch-spot", statustest.Sized(20, 20))))
	b.Targets.Report(ctx, statustest.With(statustest.Report("prod-us", statustest.Pool("prod-us", "web", statustest.Sized(8, 8), statustest.Rolling(0, 8)), statustest.Pool("prod-us", "batch-spot", statustest.Sized(20, 20))), step.Done, statustest.RolloutSteps()...))
	b.Targets.Report(ctx, statustest.Report("prod-us", statustest.Pool("prod-us", "web", statustest.Sized(8, 8), statustest.Rolling(37, 5)), statustest.Pool("prod-us", "batch-spot", statustest.Sized(20, 20))))
	b.Targets.SetDue("prod-us", statustest.Noon.Add(5*time.Second))

	b.Targets.Report(ctx, statustest.Report("staging", statustest.Pool("staging", "web", statustest.Sized(2, 2))))
	broken := statustest.Report("staging")
	broken.Plan, broken.Diagnostics = nil, diag.List{statustest.UnknownField(), {
		Severity: diag.Warning, Code: "default-network", Summary: "the default VPC is used",
		Position: diag.Position{File: "base/cluster.yaml", Line: 3},
	}}
	b.Targets.Report(ctx, broken)

	dev := statustest.Report("dev", statustest.Pool("dev", "web", statustest.Unconverged(plan.PhaseRunning)), statustest.Pool("dev", "workers", statustest.Sized(1, 1)))
	dev.Suspended = true
	held := statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "dev-web")
	held.Held, held.Changes = step.HeldSuspended, []step.Change{{Field: "maxSize", From: 7, To: 5, Origin: &diag.Position{File: "overlays/dev/web.yaml", Line: 14, Column: 12}}}
	b.Targets.Report(ctx, statustest.With(dev, step.Held, held))

	long := statustest.Report("platform-observability-eu-central-1-blue-green",
		statustest.Pool("platform-observability-eu-central-1-blue-green", "prometheus-long-term-storage-ingesters-multi-zone-arm64",
			statustest.Failed("rollout-failed", "the instance refresh 1f2e3d4c of platform-observability-eu-central-1-blue-green-prometheus-long-term-storage ended as Failed: instances did not pass the health check")))
	long.Err = errors.New("autoscaling:DescribeInstanceRefreshes: AccessDenied: User arn:aws:sts::111122223333:assumed-role/weir/weir-production is not authorized (request 5f8c6d2e-0000)")
	b.Targets.Report(ctx, long)
	return b
}
