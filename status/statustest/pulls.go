package statustest

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate/timeline"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/report"
)

// Planned returns a pull request with steps of all kinds.
func Planned() report.Pull {
	origin := func(file string, line int) *diag.Position { return &diag.Position{File: file, Line: line, Column: 7} }
	two := int32(67)
	rolling := Report("prod-eu", Pool("prod-eu", "web", Sized(6, 6)), Pool("prod-eu", "batch", Sized(10, 10)))
	rolling.Plan.Steps = []step.Step{
		{Verb: step.Update, Resource: step.LaunchTemplate, Pool: "default/web", Name: "prod-eu-web", Reason: "instanceType m6i.large → c7g.large", Changes: []step.Change{
			{Field: "awsLaunchTemplate.instanceType", From: "m6i.large", To: "c7g.large", Origin: origin("overlays/prod-eu/web.yaml", 9)},
			{Field: "awsLaunchTemplate.rootVolume", To: map[string]any{"size": 64, "type": "gp3"}, Origin: origin("base/pool (new).yaml", 31)},
			{Field: "userData.write_files[/etc/node.conf]", From: "4 lines", To: "6 lines (+3 -1)"},
		}},
		{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "prod-eu-web", Reason: "6 of 6 instances do not run version 5", Disruptive: true, Instances: 6,
			Do: step.StartRefresh{Group: "prod-eu-web", Preferences: intent.Refresh{MinHealthyPercentage: &two}}},
		{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/batch", Name: "prod-eu-batch", Reason: "10 of 10 instances do not run version 3", Disruptive: true, Instances: 10,
			Do: step.StartRefresh{Group: "prod-eu-batch"}, Held: step.HeldWindow, HeldReason: "opens on Monday at 08:00"},
	}
	rolling.Plan.Summary = plan.Summary{Rollout: 2, Unchanged: 3}
	rolling.Plan.Diagnostics = diag.List{
		{Severity: diag.Info, Code: "newer-image", Summary: "a newer image ami-0ccc is published; version 5 of the launch template prod-eu-web stays with ami-0bbb",
			Detail: "it is taken when the pool's launch configuration changes", Position: diag.Position{File: "base/pool.yaml", Line: 20}},
		{Severity: diag.Warning, Code: "default-network", Summary: "the default VPC is used", Object: "AWSMachinePool default/web", Field: "spec.subnets",
			Related: []diag.Related{{Position: diag.Position{File: "base/cluster.yaml", Line: 3}, Message: "no network is named here"}}},
	}
	other := Report("prod-us")
	other.Plan.Steps = []step.Step{
		{Verb: step.Create, Resource: step.AutoScalingGroup, Pool: "default/edge", Name: "prod-us-edge", Reason: "the pool is new", Changes: []step.Change{{Field: "maxSize", To: 5}}},
		{Verb: step.Update, Resource: step.LaunchTemplate, LaunchConfig: "default/shared", Pools: []string{"default/a", "default/b"}, Name: "prod-us-shared", Reason: "new version", Later: true},
		{Verb: step.Replace, Resource: step.ManagedNodegroup, Pool: "default/gpu", Name: "gpu", Reason: "the disk size cannot be changed", Disruptive: true, Instances: 2, Changes: []step.Change{{Field: "diskSize", From: 20, To: 50}}},
		{Verb: step.Delete, Resource: step.AutoScalingGroup, Pool: "default/old", Name: "prod-us-old", Reason: "Git does not want it", Disruptive: true, Instances: 4, Held: step.HeldPruneLimit},
		{Verb: step.Adopt, Resource: step.AutoScalingGroup, Pool: "default/found", Name: "found", Reason: "annotated"},
		{Verb: step.PruneVersion, Resource: step.LaunchTemplate, Pool: "default/web", Name: "prod-us-web", Reason: "old versions 1, 2"},
		{Verb: step.Update, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "prod-us-web", Reason: "maxSize 7 → 5", Drift: &step.Drift{Cause: "a user request"}, Changes: []step.Change{{Field: "maxSize", From: 7, To: 5}}},
	}
	other.Plan.Summary = plan.Summary{Create: 1, Update: 3, Replace: 1, Delete: 1}
	same := Report("staging")
	same.Plan.Summary.Unchanged = 4
	return report.Pull{
		Source: "fleet", Number: 12, Title: "web: c7g instances", Author: "someone", HeadSHA: ShaNew, BaseRef: "main", BaseSHA: ShaOld,
		State: report.PullPlanned, Reports: []*plan.Report{rolling, other, same}, Gone: []string{"edge-2"}, Unaffected: 10,
		Digest: strings.Repeat("d1", 32), AsReviewed: true, PageURL: "https://weir.example.com/pulls/fleet/12",
	}
}

// Roll is a pool whose machines are replaced in batches, starting at a minute.
type Roll struct {
	Target, Pool      string
	Size, Batch, From int
}

// Foresee returns the forecast of a change that rolls pools.
func Foresee(rolls ...Roll) *timeline.Timeline {
	r := timeline.New(Noon)
	machines := 0
	for _, roll := range rolls {
		r.Target(roll.Target, "123456789012", "eu-west-1")
		see := func(minute, is, starting int, moves bool) {
			at := Noon.Add(time.Duration(minute) * time.Minute)
			s := timeline.Seen{Name: roll.Pool, Desired: int32(roll.Size), Versions: map[string]int32{"4": int32(roll.Size - is), "5": int32(is)}, Starting: int32(starting), Moves: moves, Converged: !moves}
			for range starting {
				machines++
				s.Machines = append(s.Machines, fmt.Sprint("i-", machines))
			}
			r.Saw(at, roll.Target, []timeline.Seen{s}, !moves && minute > roll.From)
		}
		see(0, 0, 0, false)
		at := roll.From
		for n := 0; n < roll.Size; n += roll.Batch {
			see(at, n, min(roll.Batch, roll.Size-n), true)
			see(at+4, min(n+roll.Batch, roll.Size), 0, true)
			at += 6
		}
		see(at, roll.Size, 0, false)
	}
	r.Called(timeline.Call{Region: "eu-west-1", Bucket: "autoscaling:all", Times: 120, Left: 71})
	r.Called(timeline.Call{Region: "eu-west-1", Bucket: "autoscaling:all", Write: true, Times: 2, Left: 70})
	if len(rolls) > 1 {
		for i, roll := range rolls {
			r.Wave(Noon.Add(time.Duration(roll.From)*time.Minute), fmt.Sprintf("default/all: wave %d of %d", i+1, len(rolls)))
		}
	}
	t := r.Finish("").Brief()
	t.Assumptions = []timeline.Assumption{{What: "a machine is in service after its launch within", Value: "3m0s", Flag: "--machine-ready"}, {What: "nobody else calls AWS"}}
	return t
}

// Foreseen returns the forecast of Planned.
func Foreseen() *timeline.Timeline {
	return Foresee(Roll{"prod-eu", "default/web", 6, 2, 5}, Roll{"prod-eu", "default/batch", 10, 2, 45})
}

// Pulls returns pull requests in all states.
func Pulls() map[string]report.Pull {
	bare := func(state report.PullState, reason string) report.Pull {
		p := Planned()
		p.State, p.Reason, p.Reports, p.Gone, p.Digest, p.AsReviewed, p.Unaffected = state, reason, nil, nil, "", false, 14
		return p
	}
	with := func(change func(*report.Pull)) report.Pull {
		p := Planned()
		change(&p)
		return p
	}
	failing := bare(report.PullFailing, "staging: overlays/staging/pool.yaml:12:5: error: awsLaunchTemplate.instanceTyp: unknown field")
	broken := Report("staging")
	broken.Plan, broken.Diagnostics = nil, diag.List{UnknownField()}
	failing.Reports = []*plan.Report{broken}
	long := Planned()
	for i := range 200 {
		r := Report("cluster-" + strings.Repeat("x", i%30) + "-" + string(rune('a'+i%26)))
		r.Plan.Steps, r.Plan.Summary = Planned().Reports[0].Plan.Steps, Planned().Reports[0].Plan.Summary
		r.Plan.Steps[0].Changes = append(r.Plan.Steps[0].Changes, step.Change{Field: "maxSize", From: i, To: i + 1}) // so that no two do the same
		long.Reports = append(long.Reports, r)
	}
	nothing := bare(report.PullPlanned, "")
	same := Report("staging")
	same.Plan.Summary.Unchanged = 4
	nothing.Reports, nothing.Digest, nothing.Unaffected = []*plan.Report{same}, strings.Repeat("d2", 32), 13
	foreseen := Planned()
	foreseen.Forecast = &report.Forecast{Timeline: Foreseen()}
	unforeseen := Planned()
	unforeseen.Forecast = &report.Forecast{Command: "weir simulate --config weir.yaml --pull-request fleet#12"}
	failed := Planned()
	failed.Forecast = &report.Forecast{Command: unforeseen.Forecast.Command, Failed: "copy account 123456789012, region eu-west-1: group prod-eu-web: ValidationError: the subnet ID does not exist"}
	return map[string]report.Pull{
		"forecast-failed": failed,
		"foreseen":        foreseen, "unforeseen": unforeseen,
		"planned": Planned(), "nothing": nothing, "unaffected": bare(report.PullUnaffected, ""), "failing": failing, "long": long,
		"conflict": bare(report.PullConflict, "update the branch: overlays/prod-eu/web.yaml was changed on both sides"),
		"fork":     bare(report.PullWaiting, "it comes from a fork: a maintainer may write the comment weir plan"),
		"draft":    bare(report.PullWaiting, "it is a draft: write the comment weir plan, or mark it ready for review"),
		"closed":   bare(report.PullClosed, ""),
		"stale":    with(func(p *report.Pull) { p.Stale = "prod-eu changed in AWS since" }),
		"approved": with(func(p *report.Pull) { p.Approved = "@maintainer" }),
		"merged":   with(func(p *report.Pull) { p.State, p.MergeSHA, p.Compared = report.PullMerged, ShaOld, true }),
		"merging":  with(func(p *report.Pull) { p.State, p.MergeSHA = report.PullMerged, ShaOld }),
		"differs": with(func(p *report.Pull) {
			p.State, p.MergeSHA, p.Reports = report.PullMerged, ShaOld, nil
			p.Differs = []string{"prod-eu: the plan is not the reviewed one; it rolls 3 pools", "prod-us: it is changed too, which the review did not show"}
		}),
		"untold": with(func(p *report.Pull) {
			p.State, p.MergeSHA, p.Uncompared = report.PullMerged, ShaOld, []string{"prod-eu: it was planned together with other commits"}
		}),
		"both": with(func(p *report.Pull) {
			p.State, p.MergeSHA, p.Reports = report.PullMerged, ShaOld, nil
			p.Differs, p.Uncompared = []string{"prod-us: the merge does not change it"}, []string{"prod-eu: it was planned together with other commits"}
		}),
	}
}
