package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/statustest"
)

// restarted is what a process that starts again knows of what was told.
func restarted(t interface{ Fatal(...any) }, told Known) Known {
	raw, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	var out Known
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func kindsOf(events []Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.Kind)
	}
	return out
}

const refreshID = "08b91cf7-8fa6-48af-b6a6-d227f40f1b9b"

// started is a pass that starts a refresh, before which the pool did not roll.
func started() *plan.Report {
	r := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseRunning))), step.Done, statustest.RolloutSteps()...)
	r.Outcomes[0].Result.Template = observed.TemplateRef{Name: "prod-us-web", Version: "5"}
	r.Outcomes[1].Result.RefreshID = refreshID
	r.Touched, r.Revision = true, statustest.ShaNew
	return r
}

func last(status, message string) statustest.PoolOption {
	return func(p *plan.PoolStatus) {
		p.LastRollout = &plan.RolloutStatus{ID: refreshID, Status: status, Message: message}
	}
}

// launchFailed is for a cause; the text differs at each try.
func launchFailed(cause string) statustest.PoolOption {
	return func(p *plan.PoolStatus) {
		tries++
		p.FailureReason, p.FailureMessage, p.FailureCause = "launch-failed", fmt.Sprintf("%s in zone %d", cause, tries), cause
	}
}

var tries int

// ails is a pass that finds a degraded nodegroup.
func ails(machine, cause string) *plan.Report {
	return found(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Managed, statustest.Unconverged(plan.PhaseRunning), func(p *plan.PoolStatus) {
		p.FailureReason, p.FailureMessage, p.FailureCause = "nodegroup-degraded", cause+": "+machine, cause
	})), diag.Warning, "nodegroup-degraded", cause+": "+machine)
}

func rollsBack(p *plan.PoolStatus) {
	statustest.Rolling(60, 4)(p)
	p.Rollout.Status = "RollbackInProgress"
}

func both(options ...statustest.PoolOption) statustest.PoolOption {
	return func(p *plan.PoolStatus) {
		for _, o := range options {
			o(p)
		}
	}
}

func found(r *plan.Report, severity diag.Severity, code, summary string) *plan.Report {
	r.Diagnostics = append(r.Diagnostics, diag.Diagnostic{Severity: severity, Code: code, Summary: summary, Object: "AWSMachinePool default/web"})
	return r
}

func done(r *plan.Report, action step.Action, verb step.Verb, resource step.Resource) *plan.Report {
	s := statustest.StepFor(verb, resource, "default/web", "prod-web")
	s.Do, s.Changes = action, []step.Change{{Field: "maxSize", From: 7, To: 9}}
	return statustest.With(r, step.Done, s)
}

// TestTell plays what passes find one after the other. Each is reported twice,
// without what it did the second time, and the process restarts between any two:
// nothing may be told twice for it.
func TestTell(t *testing.T) {
	steady := func() *plan.Report { return statustest.Report("prod", statustest.Pool("prod", "web")) }
	busy := func(o ...statustest.PoolOption) *plan.Report {
		return statustest.Report("prod", statustest.Pool("prod", "web", append([]statustest.PoolOption{statustest.Unconverged(plan.PhaseRunning)}, o...)...))
	}
	held := func(h step.Hold) *plan.Report {
		s := statustest.StepFor(step.Rollout, step.AutoScalingGroup, "default/web", "prod-web")
		s.Held = h
		return statustest.With(busy(), step.Held, s)
	}
	tests := map[string]struct {
		passes []*plan.Report
		want   []string
	}{
		"nothing happens":  {[]*plan.Report{steady(), steady()}, nil},
		"a pool comes up":  {[]*plan.Report{done(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhasePending))), step.CreateGroup{}, step.Create, step.AutoScalingGroup), busy(), steady()}, []string{"group-created", "pool-converged"}},
		"refresh succeeds": {[]*plan.Report{started(), busy(statustest.Rolling(30, 5)), busy(statustest.Rolling(80, 1)), steady()}, []string{"version-created", "refresh-started", "refresh-progress", "refresh-progress", "refresh-succeeded", "pool-converged"}},
		"refresh succeeds, and AWS says so": {
			[]*plan.Report{started(), steady(), statustest.Report("prod", statustest.Pool("prod", "web", last("Successful", "")))}, []string{"version-created", "refresh-started", "refresh-succeeded", "pool-converged"},
		},
		"refresh fails": {
			[]*plan.Report{started(), busy(both(statustest.Failed("rollout-failed", "it ended as Failed"), last("Failed", "unhealthy")))}, []string{"version-created", "refresh-started", "refresh-failed"},
		},
		"refresh goes back": {
			[]*plan.Report{started(), busy(rollsBack), busy(both(statustest.Failed("rollout-failed", "it ended as RollbackSuccessful"), last("RollbackSuccessful", "alarm")))},
			[]string{"version-created", "refresh-started", "refresh-rolling-back", "refresh-progress", "refresh-rolled-back"},
		},
		"refresh is cancelled by somebody": {
			[]*plan.Report{started(), busy(both(statustest.Failed("rollout-cancelled", "outside weir"), last("Cancelled", "")))}, []string{"version-created", "refresh-started", "refresh-cancelled"},
		},
		"refresh is superseded": {
			[]*plan.Report{started(), done(busy(statustest.Rolling(30, 5)), step.CancelRefresh{RefreshID: refreshID}, step.Rollout, step.AutoScalingGroup), busy(last("Cancelled", ""))},
			[]string{"version-created", "refresh-started", "refresh-progress", "refresh-superseded"},
		},
		"refresh is not to be seen yet": {
			[]*plan.Report{started(), statustest.With(busy(), step.Skipped, statustest.RolloutSteps()[1]), busy(statustest.Rolling(0, 8)), steady()}, []string{"version-created", "refresh-started", "refresh-succeeded", "pool-converged"},
		},
		"a rollout that weir lost sight of": {[]*plan.Report{steady(), busy(statustest.Rolling(10, 7)), steady()}, []string{"refresh-started", "refresh-succeeded", "pool-converged"}},
		"nodegroup update fails": {
			[]*plan.Report{
				func() *plan.Report {
					r := done(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Managed, statustest.Unconverged(plan.PhaseRunning))), step.UpdateNodegroupVersion{}, step.Rollout, step.ManagedNodegroup)
					r.Outcomes[0].Result.UpdateID = "u-1"
					return r
				}(),
				statustest.Report("prod", statustest.Pool("prod", "web", statustest.Managed, statustest.Failed("nodegroup-update-failed", "PodEvictionFailure"))),
			}, []string{"nodegroup-update-started", "nodegroup-update-failed"},
		},
		"two causes for which AWS launches nothing take turns": {
			[]*plan.Report{
				steady(), busy(launchFailed("a")), busy(launchFailed("b")), busy(launchFailed("a")), busy(), busy(launchFailed("a")), busy(launchFailed("b")), steady(), busy(launchFailed("a")),
			}, []string{"pool-failed", "pool-failed", "pool-converged", "pool-failed"},
		},
		"a nodegroup ails for one cause, then for another": {
			[]*plan.Report{
				steady(), ails("i-1", "NodeCreationFailure"), ails("i-2", "NodeCreationFailure"), ails("", "AccessDenied"), ails("i-3", "NodeCreationFailure"), steady(),
			}, []string{"nodegroup-degraded", "nodegroup-degraded", "pool-converged"},
		},
		"drift is corrected": {
			[]*plan.Report{steady(), done(busy(), step.UpdateGroup{}, step.Update, step.AutoScalingGroup), busy(), steady()},
			[]string{"drift-found", "group-updated", "drift-corrected", "pool-converged"},
		},
		"drift is reported only": {
			[]*plan.Report{steady(), held(step.HeldSuspended), held(step.HeldSuspended), steady()}, []string{"drift-found", "drift-gone", "pool-converged"},
		},
		"a change in Git is no drift": {
			[]*plan.Report{func() *plan.Report { r := steady(); r.Revision = statustest.ShaOld; return r }(), started()}, []string{"version-created", "refresh-started"},
		},
		"conflict":             {[]*plan.Report{found(busy(), diag.Error, "conflict", "somebody else's"), found(busy(), diag.Error, "conflict", "somebody else's")}, []string{"conflict-found"}},
		"prune refused, twice": {[]*plan.Report{found(steady(), diag.Error, "prune-refused", "3 of 5"), steady(), found(steady(), diag.Error, "prune-refused", "3 of 5")}, []string{"prune-refused", "prune-refused"}},
		"other faults": {
			[]*plan.Report{found(busy(), diag.Error, "lookup-unanswered", "no answer"), found(busy(), diag.Error, "subnets-not-found", "none"), busy()}, []string{"target-failed", "target-failed", "target-recovered"},
		},
		"a step fails": {
			[]*plan.Report{statustest.With(busy(), step.Failed, statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "prod-web")), statustest.With(busy(), step.Failed, statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "prod-web"))}, []string{"step-failed"},
		},
		"approval":      {[]*plan.Report{held(step.HeldApproval), held(step.HeldApproval), started()}, []string{"approval-wanted", "version-created", "refresh-started"}},
		"window":        {[]*plan.Report{held(step.HeldWindow)}, []string{"window-awaited"}},
		"control plane": {[]*plan.Report{held(step.HeldControlPlane), held(step.HeldControlPlane)}, []string{"control-plane-awaited"}},
		"gate":          {[]*plan.Report{held(step.HeldGate)}, []string{"gate-awaited"}},
		"held to an earlier commit": {
			[]*plan.Report{steady(), statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web")), statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web")), steady()},
			[]string{"target-held", "target-failed", "target-hold-ended", "target-recovered"},
		},
		"held, and tried at others meanwhile": {
			[]*plan.Report{steady(), statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web")), searching(), unknown(), statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web"))},
			[]string{"target-held", "target-failed"},
		},
		"held, then to nothing, then again": {
			[]*plan.Report{steady(), statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web")), statustest.HeldTo(""), statustest.HeldTo(""), statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web"))},
			[]string{"target-held", "target-failed", "target-only-observed", "target-held"},
		},
		"only observed from the start": {[]*plan.Report{searching(), statustest.HeldTo(""), steady()}, []string{"target-failed", "target-only-observed", "target-hold-ended", "target-recovered"}},
		"wave":                         {[]*plan.Report{held(step.HeldWave), held(step.HeldRolloutLimit)}, []string{"wave-awaited"}},
		"a hold that is new":           {[]*plan.Report{held("moon")}, []string{"step-held"}},
		"beside the steps": {[]*plan.Report{func() *plan.Report {
			r := steady()
			r.Milestones = []step.Milestone{{Kind: "join-tokens-renewed"}}
			return r
		}()}, []string{"join-tokens-renewed"}},
		"suspended":          {[]*plan.Report{func() *plan.Report { r := held(step.HeldSuspended); r.Suspended = true; return r }(), busy()}, []string{"target-suspended", "target-resumed"}},
		"versions pruned":    {[]*plan.Report{done(busy(), step.DeleteLaunchTemplateVersions{}, step.PruneVersion, step.LaunchTemplate)}, []string{"versions-pruned"}},
		"adopted":            {[]*plan.Report{done(busy(), step.TagGroup{}, step.Adopt, step.AutoScalingGroup)}, []string{"adopted"}},
		"a step that is new": {[]*plan.Report{done(busy(), nil, step.Update, "join-token")}, []string{"join-token-updated"}},
		"AWS cannot be reached": {
			[]*plan.Report{
				{Target: "prod", Revision: statustest.ShaNew, Err: &observed.Error{Kind: observed.Transient, Service: "ec2", Operation: "DescribeSubnets", Code: "ConnectionFailed"}},
				{Target: "prod", Revision: statustest.ShaNew, Err: &observed.Error{Kind: observed.Transient, Service: "autoscaling", Operation: "DescribeAutoScalingGroups", Code: "ConnectionFailed"}},
				{Target: "prod", Revision: statustest.ShaNew, Err: &observed.Error{Kind: observed.Denied, Service: "autoscaling", Operation: "DescribeAutoScalingGroups", Code: "AccessDenied"}},
				steady(),
			}, []string{"target-failed", "target-failed", "target-recovered"},
		},
		"AWS cannot be read": {
			[]*plan.Report{
				found(steady(), diag.Error, "conflict", "x"),
				{Target: "prod", Revision: statustest.ShaNew, Err: &observed.Error{Kind: observed.Denied, Service: "ec2", Operation: "Describe", Code: "UnauthorizedOperation", RequestID: "1"}},
				{Target: "prod", Revision: statustest.ShaNew, Err: &observed.Error{Kind: observed.Denied, Service: "ec2", Operation: "Describe", Code: "UnauthorizedOperation", RequestID: "2"}},
				found(steady(), diag.Error, "conflict", "x"),
			}, []string{"conflict-found", "target-failed", "target-recovered"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var told Known
			got := []string{}
			for _, r := range tc.passes {
				next, events := Between(told, r, statustest.Noon, true)
				got = append(got, kindsOf(events)...)
				again := *r
				again.Milestones = nil
				if !slices.ContainsFunc(again.Outcomes, func(o step.Outcome) bool { return o.Status == step.Failed }) {
					again.Outcomes = nil
				}
				told = restarted(t, next)
				if _, events := Between(told, &again, statustest.Noon, true); len(events) > 0 {
					t.Errorf("told again: %v", kindsOf(events))
				}
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			for _, k := range got {
				if !slices.Contains(kinds.All(), k) && k != "join-token-updated" {
					t.Errorf("EventKinds lacks %s", k)
				}
			}
		})
	}
}

// TestTellSurvivesRestarts: what is told does not depend on whether the process
// was started anew between two passes.
func TestTellSurvivesRestarts(t *testing.T) {
	web := func(o ...statustest.PoolOption) *plan.Report {
		return statustest.Report("prod", statustest.Pool("prod", "web", o...))
	}
	passes := []func() *plan.Report{
		func() *plan.Report { return web() },
		started,
		func() *plan.Report { return web(statustest.Rolling(30, 5)) },
		func() *plan.Report { return web(rollsBack) },
		func() *plan.Report {
			return web(both(statustest.Failed("rollout-failed", "x"), last("RollbackSuccessful", "")))
		},
		func() *plan.Report { return found(web(), diag.Error, "conflict", "x") },
		func() *plan.Report { return found(web(), diag.Error, "unknown-field", "x") },
		func() *plan.Report {
			return statustest.With(web(statustest.Unconverged(plan.PhaseRunning)), step.Held, statustest.HeldStep(step.HeldApproval))
		},
		func() *plan.Report {
			return statustest.With(web(statustest.Unconverged(plan.PhaseRunning)), step.Failed, statustest.RolloutSteps()...)
		},
		func() *plan.Report { r := web(); r.Suspended = true; return r },
		func() *plan.Report { r := web(); r.Plan, r.Pools, r.Err = nil, nil, plan.ErrSource; return r },
		func() *plan.Report { return statustest.Report("prod") },
	}
	rapid.Check(t, func(t *rapid.T) {
		var through, anew Known
		for i, n := range rapid.SliceOfN(rapid.IntRange(0, len(passes)-1), 1, 12).Draw(t, "passes") {
			var want, got []Event
			through, want = Between(through, passes[n](), statustest.Noon, true)
			anew, got = Between(restarted(t, anew), passes[n](), statustest.Noon, true)
			if diff := cmp.Diff(kindsOf(want), kindsOf(got)); diff != "" {
				t.Fatalf("pass %d (-without +with restarts):\n%s", i, diff)
			}
			quiet := passes[n]()
			for j := range quiet.Outcomes {
				if quiet.Outcomes[j].Status == step.Done {
					quiet.Outcomes[j].Status = step.Skipped
				}
			}
			if _, again := Between(anew, quiet, statustest.Noon, true); len(again) > 0 {
				t.Fatalf("pass %d told %v again", i, kindsOf(again))
			}
		}
	})
}

// TestEventSaysWhat: of a new version, which fields changed, where that stands, and
// which version it is.
func TestEventSaysWhat(t *testing.T) {
	_, events := Between(Known{}, started(), statustest.Noon, true)
	want := Event{
		Time: statustest.Noon, Kind: "version-created", Level: kinds.Info, Target: "prod", Pool: "default/web", Resource: step.LaunchTemplate, Name: "prod-us-web",
		Revision: statustest.ShaNew, Reason: "the instance type changed: version 5", Text: "updated launch template prod-us-web: the instance type changed: version 5",
		Changes: []Change{
			{Field: "awsLaunchTemplate.instanceType", From: "m6i.large", To: "c7g.large", At: "overlays/prod-us/web.yaml:9:21"},
			{Field: "awsLaunchTemplate.ami.id", From: "ami-0aaaaaaaaaaaaaaa1", To: "ami-0bbbbbbbbbbbbbbb2"},
			{Field: "awsLaunchTemplate.rootVolume", To: map[string]any{"size": 64, "type": "gp3"}, At: "base/pool.yaml:31"},
		},
		Facts: map[string]string{"version": "5"},
	}
	if diff := cmp.Diff(want, events[0]); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if f := events[1].Facts; f["refresh"] != refreshID || f["instances"] != "8" {
		t.Errorf("the refresh's facts are %v", f)
	}
}

// TestDriftIsThePlanners: once it has seen a pool converge, it alone says what is
// drift, for it knows what else may have changed.
func TestDriftIsThePlanners(t *testing.T) {
	steady, _ := Between(Known{}, statustest.Report("prod", statustest.Pool("prod", "web")), statustest.Noon, true)
	r := done(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseRunning))), step.UpdateGroup{}, step.Update, step.AutoScalingGroup)
	if _, events := Between(steady, r, statustest.Noon, false); slices.Contains(kindsOf(events), "drift-found") {
		t.Errorf("a changed variable is told as %v", kindsOf(events))
	}
	r.Plan.Steps[0].Drift = &step.Drift{Cause: "a user request"}
	_, events := Between(steady, r, statustest.Noon, false)
	if len(events) != 2 || events[0].Kind != "drift-found" || events[0].Facts["cause"] != "a user request" || len(events[0].Changes) != 1 {
		t.Errorf("events %+v", events)
	}
}

// TestEventsAreBounded: a pass that finds very much, and steps that change very
// much, do not fill the history by themselves.
func TestEventsAreBounded(t *testing.T) {
	r := statustest.Report("prod", statustest.Pool("prod", "web"))
	for i := range 1000 {
		r.Diagnostics = append(r.Diagnostics, diag.Diagnostic{Severity: diag.Error, Code: "conflict", Summary: fmt.Sprint(i)})
		r.Diagnostics = append(r.Diagnostics, diag.Diagnostic{Severity: diag.Error, Code: "unknown-field", Summary: fmt.Sprint(i)})
	}
	told, events := Between(Known{}, r, statustest.Noon, true)
	if len(events) != maxAnnounced+1 || len(told.Standing) != maxAnnounced+1 {
		t.Errorf("%d events, %d standing facts", len(events), len(told.Standing))
	}
	s := statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "web")
	for range 1000 {
		s.Changes = append(s.Changes, step.Change{Field: "f", From: strings.Repeat("x", 1<<20)})
	}
	_, events = Between(Known{}, statustest.With(statustest.Report("prod"), step.Done, s), statustest.Noon, true)
	raw, err := json.Marshal(events)
	if err != nil || len(raw) > 20_000 {
		t.Errorf("an event has %d bytes, %v", len(raw), err)
	}
}
