package commits

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
	"github.com/weir-gitops/weir/status/wording"
)

func callFailed(kind observed.ErrorKind) *plan.Report {
	r := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Failed, statustest.StepFor(step.Create, step.AutoScalingGroup, "default/web", "prod-web"))
	r.Outcomes[0].Err.Kind = kind
	return r
}

func withErr(err error) *plan.Report {
	r := statustest.Report("prod")
	r.Plan, r.Err = nil, err
	return r
}

func TestVerdict(t *testing.T) {
	suspended := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseRunning))), step.Held, statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "w"))
	suspended.Suspended = true
	idle := statustest.Report("prod", statustest.Pool("prod", "web"))
	idle.Suspended = true
	warned := statustest.Report("prod", statustest.Pool("prod", "web"))
	warned.Diagnostics = diag.List{{Severity: diag.Warning, Summary: "the default VPC is used"}}
	broken := statustest.Report("prod")
	broken.Plan, broken.Diagnostics = nil, diag.List{statustest.UnknownField()}
	noPlan := statustest.Report("prod")
	noPlan.Plan = nil
	found := statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(10, 3)))
	found.Pools[0].TemplateVersions = []plan.VersionNote{{Number: 3, Revision: found.Revision[:7]}, {Number: 2}}
	ending := map[string]*plan.Report{}
	for _, status := range []string{"Cancelling", "RollbackInProgress"} {
		ending[status] = statustest.Report("prod", statustest.Pool("prod", "web"), statustest.Pool("prod", "old", statustest.Rolling(10, 3)))
		ending[status].Pools[1].Rollout.Status = status
	}
	for name, c := range map[string]struct {
		report *plan.Report
		state  forge.CommitState
		text   string
	}{
		"an earlier one is ended":  {ending["Cancelling"], forge.Pending, "0 of 1 pool converged; default/old is rolling"},
		"an earlier one goes back": {ending["RollbackInProgress"], forge.Pending, "0 of 1 pool converged; default/old is rolling"},
		"a rollout of it is found": {found, forge.Pending, "0 of 1 pool converged; default/web is rolling"},
		"nothing to do":            {statustest.Report("prod", statustest.Pool("prod", "web")), forge.Success, "nothing to change in AWS"},
		"an untouched pool moves":  {statustest.Report("prod", statustest.Pool("prod", "web"), statustest.Pool("prod", "old", statustest.Rolling(10, 3))), forge.Success, "nothing to change in AWS"},
		"warnings do not fail":     {warned, forge.Success, "nothing to change in AWS"},
		"steps are under way":      {statustest.Created(), forge.Pending, "0 of 1 pool converged; default/web is Provisioning"},
		"a group goes":             {statustest.With(statustest.Report("prod"), step.Done, statustest.StepFor(step.Delete, step.AutoScalingGroup, "default/old", "old")), forge.Pending, "0 of 1 pool converged; default/old is being deleted"},
		"an orphan without a pool": {statustest.With(statustest.Report("prod"), step.Done, statustest.StepFor(step.Delete, step.LaunchTemplate, "", "old")), forge.Pending, "applying"},
		"a fault in the files":     {broken, forge.Failure, "awsLaunchTemplate.instanceTyp: unknown field (overlays/staging/pool.yaml:12:5)"},
		"a denied call":            {callFailed(observed.Denied), forge.Failure, "create auto-scaling-group prod-web: AccessDenied: not authorized to perform: autoscaling:CreateAutoScalingGroup"},
		"a throttled call":         {callFailed(observed.Throttled), forge.Pending, "trying again: create auto-scaling-group prod-web: AccessDenied: not authorized to perform: autoscaling:CreateAutoScalingGroup"},
		"no access at all":         {withErr(errors.New("assume role: AccessDenied")), forge.Failure, "assume role: AccessDenied"},
		"AWS away":                 {withErr(fmt.Errorf("observe: %w", &observed.Error{Kind: observed.Transient, Service: "ec2", Operation: "DescribeLaunchTemplates", Code: "Unavailable"})), forge.Pending, "trying again: observe: ec2:DescribeLaunchTemplates: Unavailable"},
		"the pass was stopped":     {withErr(fmt.Errorf("observe: %w", context.Canceled)), forge.Pending, "trying again: observe: context canceled"},
		"no plan yet":              {noPlan, forge.Pending, "waiting for a plan"},
		"a conflict":               {statustest.With(statustest.Report("prod"), step.Held, statustest.HeldStep(step.HeldConflict)), forge.Failure, "conflict: auto-scaling-group prod-web: owned by another weir"},
		"too much to prune":        {statustest.With(statustest.Report("prod"), step.Held, statustest.HeldStep(step.HeldPruneLimit)), forge.Failure, "prune refused: 1 step waits for an approval, because the plan deletes more than the limit allows; released by: weir approve DIGEST, or a commit that reverts the deletion"},
		"an approval is needed":    {statustest.With(statustest.Report("prod"), step.Held, statustest.HeldStep(step.HeldApproval)), forge.Pending, "1 step waits for an approval; released by: weir approve DIGEST"},
		"a window is closed":       {statustest.With(statustest.Report("prod"), step.Held, statustest.HeldStep(step.HeldWindow)), forge.Pending, "1 step waits for a window; released by: the window, or weir reconcile prod --override-window"},
		"a control plane":          {statustest.With(statustest.Report("prod"), step.Held, statustest.HeldStep(step.HeldControlPlane)), forge.Pending, "1 step waits for the control plane; released by: the control plane, once it is ready and has that version; weir does not upgrade it"},
		"suspended with work":      {suspended, forge.Pending, "1 step waits for the end of a suspension"},
		"suspended without work":   {idle, forge.Success, "nothing to change in AWS"},
		"paused in Git":            {statustest.With(statustest.Report("prod", statustest.Pool("prod", "web", statustest.Unconverged(plan.PhaseRunning))), step.Held, statustest.HeldStep(step.HeldPaused)), forge.Success, "nothing to change in AWS; paused: 1 step"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &targetTrack{State: forge.Pending}
			tr.observe(report.Redact(nil).Report(c.report), statustest.Noon)
			if tr.State != c.state || tr.Description != c.text {
				t.Errorf("got %s %q\nwant %s %q", tr.State, tr.Description, c.state, c.text)
			}
		})
	}
}

func TestVerdictOverTime(t *testing.T) {
	tr := &targetTrack{State: forge.Pending}
	see := func(r *plan.Report, after time.Duration, want forge.CommitState) {
		t.Helper()
		tr.observe(r, statustest.Noon.Add(after))
		if tr.State != want {
			t.Errorf("after %s: %s (%s), want %s", after, tr.State, tr.Description, want)
		}
	}
	moving := func(percent int32) *plan.Report {
		return statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(percent, 3)))
	}
	see(statustest.With(moving(0), step.Done, statustest.RolloutSteps()...), 0, forge.Pending)
	see(callFailed(observed.Throttled), time.Minute, forge.Pending)
	see(callFailed(observed.Throttled), 12*time.Minute, forge.Failure) // longer than patience
	see(moving(10), 13*time.Minute, forge.Failure)                     // no flicker back to pending
	see(statustest.Report("prod", statustest.Pool("prod", "web")), 20*time.Minute, forge.Success)
	see(callFailed(observed.Denied), 21*time.Minute, forge.Success)
	if tr.Description != "1 pool rolled" {
		t.Errorf("description is %q", tr.Description)
	}

	tr = &targetTrack{State: forge.Pending}
	see(statustest.With(moving(0), step.Done, statustest.RolloutSteps()...), 0, forge.Pending)
	for i := range int32(12) { // hours, as long as it moves
		see(moving(i), time.Duration(i)*20*time.Minute, forge.Pending)
	}
	see(moving(11), 4*time.Hour+11*time.Minute, forge.Failure)
	if want := "no progress for 31 minutes: 0 of 1 pool converged; default/web is rolling"; tr.Description != want {
		t.Errorf("description is %q, want %q", tr.Description, want)
	}
}

func TestAggregate(t *testing.T) {
	done := &targetTrack{State: forge.Success, Description: "2 pools created", Pools: map[string]step.Verb{"a/b": step.Create, "a/c": step.Create}}
	rolled := &targetTrack{State: forge.Success, Description: "1 pool rolled", Pools: map[string]step.Verb{"a/b": step.Rollout}}
	waits := &targetTrack{State: forge.Pending, Description: "planning"}
	fails := &targetTrack{State: forge.Failure, Description: "AccessDenied"}
	for name, c := range map[string]struct {
		targets map[string]*targetTrack
		state   forge.CommitState
		text    string
	}{
		"none":        {nil, forge.Success, "no target affected"},
		"one done":    {map[string]*targetTrack{"a": done}, forge.Success, "a: 2 pools created"},
		"both done":   {map[string]*targetTrack{"a": done, "b": rolled}, forge.Success, "2 targets: 2 pools created, 1 rolled"},
		"one waits":   {map[string]*targetTrack{"a": done, "b": waits}, forge.Pending, "1 of 2 targets converged"},
		"only waits":  {map[string]*targetTrack{"b": waits}, forge.Pending, "b: planning"},
		"one fails":   {map[string]*targetTrack{"a": done, "b": waits, "c": fails}, forge.Failure, "1 of 3 targets failed; c: AccessDenied"},
		"only fails":  {map[string]*targetTrack{"c": fails}, forge.Failure, "c: AccessDenied"},
		"both failed": {map[string]*targetTrack{"b": fails, "c": fails}, forge.Failure, "2 of 2 targets failed; b: AccessDenied"},
	} {
		t.Run(name, func(t *testing.T) {
			if state, text := aggregate(c.targets); state != c.state || text != c.text {
				t.Errorf("got %s %q, want %s %q", state, text, c.state, c.text)
			}
		})
	}
}

// TestVerdictWithoutTheSource: a forge that is down for a while is not a commit's
// fault, and hides neither what AWS refuses nor what is still to be deleted.
func TestVerdictWithoutTheSource(t *testing.T) {
	away := func(r *plan.Report) *plan.Report {
		r.Err = fmt.Errorf("read source fleet: unreachable: %w", plan.ErrSource)
		return r
	}
	none := func() *plan.Report { r := statustest.Report("prod"); r.Plan = nil; return away(r) }
	quiet := func() *plan.Report { return statustest.Report("prod", statustest.Pool("prod", "web")) }
	type look struct {
		report *plan.Report
		after  time.Duration
		state  forge.CommitState
		text   string
	}
	const waiting = "waiting for the source: read source fleet: unreachable: source cannot be read"
	for name, looks := range map[string][]look{
		"a short outage": {
			{away(statustest.Created()), 0, forge.Pending, "0 of 1 pool converged; default/web is Provisioning"},
			{away(quiet()), time.Minute, forge.Pending, "0 of 1 pool converged; default/web is Provisioning"},
			{quiet(), 2 * time.Minute, forge.Success, "1 pool created"},
		},
		"a long outage": {
			{away(quiet()), 0, forge.Pending, "planning"},
			{away(quiet()), patience, forge.Pending, waiting},
			{away(quiet()), 24 * time.Hour, forge.Pending, waiting},
			{quiet(), 25 * time.Hour, forge.Success, "nothing to change in AWS"},
		},
		"outages apart": {
			{away(quiet()), 0, forge.Pending, "planning"},
			{statustest.Created(), time.Minute, forge.Pending, "0 of 1 pool converged; default/web is Provisioning"},
			{away(quiet()), patience + time.Minute, forge.Pending, "0 of 1 pool converged; default/web is Provisioning"},
		},
		"before anything was read": {
			{none(), 0, forge.Pending, "planning"},
			{none(), patience, forge.Pending, waiting},
		},
		"a resource of another target": {
			{away(statustest.With(statustest.Report("prod"), step.Held, statustest.HeldStep(step.HeldConflict))), 0, forge.Pending, "planning"},
			{statustest.With(statustest.Report("prod"), step.Held, statustest.HeldStep(step.HeldConflict)), time.Minute, forge.Failure, "conflict: auto-scaling-group prod-web: owned by another weir"},
		},
		"a step that AWS refuses": {
			{away(callFailed(observed.Denied)), 0, forge.Failure, "create auto-scaling-group prod-web: AccessDenied: not authorized to perform: autoscaling:CreateAutoScalingGroup"},
			{away(quiet()), time.Hour, forge.Failure, "create auto-scaling-group prod-web: AccessDenied: not authorized to perform: autoscaling:CreateAutoScalingGroup"},
			{quiet(), 2 * time.Hour, forge.Success, "1 pool created"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &targetTrack{State: forge.Pending, Description: "planning"}
			for _, l := range looks {
				tr.observe(report.Redact(nil).Report(l.report), statustest.Noon.Add(l.after))
				if tr.State != l.state || tr.Description != l.text {
					t.Errorf("after %s: %s %q\nwant %s %q", l.after, tr.State, tr.Description, l.state, l.text)
				}
			}
		})
	}
}

// A commit answers for the pools that the one before was changing, and not for one that
// never came to be and that Git has no more.
func TestAPoolThatNeverCameToBeIsNotCounted(t *testing.T) {
	tt, now := &targetTrack{State: forge.Pending, Pools: map[string]step.Verb{"default/api": step.Create, "default/old": step.Delete, "default/web": step.Rollout}}, time.Unix(0, 0)
	rolls := statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(10, 3)))
	rolls.Pools[0].Rollout.Message = "Waiting for instances that are in standby."
	tt.observe(rolls, now)
	if want := "1 of 2 pools converged; default/web is rolling"; tt.State != forge.Pending || tt.Description != want {
		t.Errorf("got %s %q, want %q", tt.State, tt.Description, want)
	}
	tt.observe(rolls, now.Add(stalledAfter))
	if want := "no progress for 30 minutes: 1 of 2 pools converged; default/web is rolling: Waiting for instances that are in standby."; tt.State != forge.Failure || tt.Description != want {
		t.Errorf("got %s %q, want %q", tt.State, tt.Description, want)
	}
	tt.observe(statustest.Report("prod", statustest.Pool("prod", "web")), now)
	if want := "1 pool rolled, 1 deleted"; tt.State != forge.Success || tt.Description != want {
		t.Errorf("got %s %q, want %q", tt.State, tt.Description, want)
	}
}

// A step that was held and never run does not count as done: the commit that reverts it deleted and adopted nothing.
func TestWhatWasHeldWasNotDone(t *testing.T) {
	refused := statustest.With(statustest.Report("prod"), step.Held, statustest.HeldStep(step.HeldPruneLimit))
	tt, now := &targetTrack{State: forge.Pending}, time.Unix(0, 0)
	tt.observe(refused, now)
	if tt.State != forge.Failure {
		t.Fatalf("got %s", tt.State)
	}
	next := &targetTrack{State: forge.Pending, Pools: unfinished(&track{Targets: map[string]*targetTrack{"prod": tt}}, "prod")}
	next.observe(statustest.Report("prod", statustest.Pool("prod", "web")), now)
	if want := "nothing to change in AWS"; next.State != forge.Success || next.Description != want {
		t.Errorf("got %s %q, want %q", next.State, next.Description, want)
	}
	// A pool of which something went, and which Git still has, is not deleted.
	renamed := &targetTrack{State: forge.Pending, Pools: map[string]step.Verb{"default/web": step.Delete}}
	renamed.observe(statustest.Report("prod", statustest.Pool("prod", "web")), now)
	if want := "1 pool replaced"; renamed.Description != want {
		t.Errorf("got %q, want %q", renamed.Description, want)
	}
}

// A wait is told in the words that the page has for it.
func TestWaitsAreToldAsElsewhere(t *testing.T) {
	for _, w := range step.Waits {
		if w.Hold == step.HeldPaused || w.Hold == step.HeldStopped || w.Hold == step.HeldConflict {
			continue // what Git says, and faults
		}
		r := statustest.With(statustest.Report("prod"), step.Held, statustest.Waiting(w.Hold))
		if _, text := heldState(r); !strings.HasSuffix(text, wording.WaitsOf("prod", r.Plan.Steps)[0].Text()) {
			t.Errorf("%s: %q", w.Hold, text)
		}
	}
}

// A status counts the steps that wait for what it names, and no others.
func TestAStatusCountsWhatWaitsForTheSame(t *testing.T) {
	one, two := statustest.Waiting(step.HeldWave), statustest.Waiting(step.HeldWave)
	two.HeldReason = "until something else"
	_, text := heldState(statustest.With(statustest.Report("prod"), step.Held, one, two))
	if want := "1 step waits for an earlier wave: until the cows come home"; !strings.HasPrefix(text, want) {
		t.Errorf("%q, want %q", text, want)
	}
}

// Who broke a target reads first what became of it, and is not told of a revision that is only
// being tried.
func TestTheStatusOfACommitSaysToWhatItsTargetIsHeld(t *testing.T) {
	searching := statustest.HeldTo("")
	searching.Fallback.Revision = statustest.ShaOld
	for want, r := range map[string]*plan.Report{
		"held to 9c1f0d2: did not find expected": statustest.HeldTo(statustest.ShaOld),
		"only observed: did not find expected":   statustest.HeldTo(""),
		"did not find expected":                  searching,
	} {
		var track targetTrack
		track.observe(r, statustest.Noon)
		if track.State != forge.Failure || !strings.HasPrefix(track.Description, want) {
			t.Errorf("%s %q, want %q", track.State, track.Description, want)
		}
	}
}
