package plan

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Each case is a step, what the gates say, and how the step then stands. The cases are in the
// order in which situations count; a case with two reasons shows which of them decides.
func TestSituationsOfAStep(t *testing.T) {
	var (
		resizes  = step.Step{Verb: step.Update, Pool: "default/web", Do: step.UpdateGroup{Name: "web"}}
		corrects = step.Step{Verb: step.Update, Pool: "default/web", Drift: &step.Drift{}, Do: step.UpdateGroup{Name: "web"}}
		rolls    = step.Step{Verb: step.Rollout, Pool: "default/web", Disruptive: true, Do: step.StartRefresh{Group: "web"}}
		stops    = step.Step{Verb: step.Rollout, Pool: "default/web", Disruptive: true, Stops: true, Do: step.CancelRefresh{Group: "web"}}
		removes  = step.Step{Verb: step.Delete, Pool: "default/old", Disruptive: true, Do: step.DeleteGroup{}}
	)
	held := func(s step.Step, by step.Hold, reason string) step.Step {
		s.Held, s.HeldReason = by, reason
		return s
	}
	first := func(s step.Step) step.Step { s.First = true; return s }
	const digest = "0123"
	approves := func(s step.Step) *model.Grant {
		g := GrantOf(&Plan{Digested: digest, Steps: []step.Step{s}})
		g.Exact = false
		return &g
	}
	unmet := map[string]string{"default/web": "two waves are demanded"}
	for _, tc := range []struct {
		name  string
		step  step.Step
		gates model.Gates
		unmet map[string]string
		want  situation
	}{
		{"waves are missing for a rollout", rolls, model.Gates{}, unmet, wavesMissing},
		{"also for one that waits for its wave", held(rolls, step.HeldWave, "first the canary"), model.Gates{}, unmet, wavesMissing},
		{"but not for a change that replaces no machine", resizes, model.Gates{}, unmet, free},
		{"nor for a rollout of a paused pool", held(rolls, step.HeldPaused, ""), model.Gates{}, unmet, heldOrStopping},

		{"the planner has said why", held(rolls, step.HeldStopped, "the change is stopped"), model.Gates{Window: "on Monday"}, nil, explained},
		{"a suspended pool", held(resizes, step.HeldSuspended, ""), model.Gates{}, nil, suspended},
		{"too many deletions", held(removes, step.HeldPruneLimit, ""), model.Gates{}, nil, beyondLimit},
		{"too many deletions, a trailer is looked up", held(removes, step.HeldWaiting, ""), model.Gates{}, nil, limitUnproven},
		{"a paused pool", held(resizes, step.HeldPaused, ""), model.Gates{AsReviewed: true}, nil, heldOrStopping},
		{"the end of a bad rollout waits for nothing", stops, model.Gates{AsReviewed: true, Wave: "x", Window: "x", Waits: "x"}, nil, heldOrStopping},

		{"another plan was agreed to", resizes, model.Gates{Agreed: &model.Agreement{Digest: "another", First: true}, AsReviewed: true}, nil, notAgreed},
		{"this plan was agreed to", resizes, model.Gates{Agreed: &model.Agreement{Digest: digest, First: true}}, nil, free},
		{"the agreement named no deletion", removes, model.Gates{Agreed: &model.Agreement{Digest: "another"}}, nil, notAgreed},
		{"a deletion, and nobody to ask", removes, model.Gates{Deletions: "give --yes"}, nil, deletes},
		{"a deletion that was approved", removes, model.Gates{Deletions: "give --yes", Grant: approves(removes)}, nil, free},
		{"the first rollout of an adopted pool", first(rolls), model.Gates{}, nil, firstSince},
		{"the first rollout, decided", first(rolls), model.Gates{Decided: true}, nil, free},
		{"the first rollout, approved", first(rolls), model.Gates{Grant: approves(rolls)}, nil, free},

		{"review, and no approval", resizes, model.Gates{AsReviewed: true, Wave: "x"}, nil, notApproved},
		{"review, and an approval of something else", resizes, model.Gates{AsReviewed: true, Grant: approves(removes)}, nil, notApproved},
		{"review, and an approval", resizes, model.Gates{AsReviewed: true, Grant: approves(resizes)}, nil, free},
		{"an earlier target is behind", resizes, model.Gates{Wave: "canary rolls out", Window: "on Monday"}, nil, afterWave},
		{"drift is corrected all the same", corrects, model.Gates{Wave: "canary rolls out"}, nil, free},
		{"the window is closed", rolls, model.Gates{Window: "on Monday", Waits: "a render"}, nil, outsideWindow},
		{"the window is closed, and nothing is disrupted", resizes, model.Gates{Window: "on Monday"}, nil, free},
		{"weir renders a newer commit", resizes, model.Gates{Waits: "a render"}, nil, weirBusy},
		{"no gate", rolls, model.Gates{}, nil, free},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := model.Input{Set: &intent.Set{}, Policy: model.Policy{Gates: tc.gates, Unmet: tc.unmet}}
			p := &Plan{Digested: digest, Granted: grants(tc.gates.Grant, &Plan{Digested: digest}), Steps: []step.Step{tc.step}}
			g := newGating(in, p)
			if got := g.of(&p.Steps[0]); got != tc.want {
				t.Fatalf("%q, want %q", got, tc.want)
			}
			g.apply(&p.Steps[0])
			if after := p.Steps[0]; (after.Held == "") != (tc.want == free || tc.want == heldOrStopping && after.Stops) {
				t.Errorf("it is held by %q: %s", after.Held, after.HeldReason)
			}
		})
	}
}

// A step that needs a template version that is not approved is not approved either.
func TestAStepWaitsForTheVersionThatItNeeds(t *testing.T) {
	description := content.Describe("0123456789abcdef:fedcba9876543210", content.Commit{})
	makes := step.Step{Verb: step.Create, Resource: step.LaunchTemplate, Pool: "default/web", Name: "web", Do: step.CreateLaunchTemplate{Name: "web", Description: description}}
	launches := step.Step{Verb: step.Create, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "web", Do: step.CreateGroup{Group: observed.Group{Name: "web", Template: observed.TemplateRef{Name: "web", Content: content.Of(description)}}}}
	grant := GrantOf(&Plan{Digested: "0123", Steps: []step.Step{launches}})
	grant.Exact = false
	p := &Plan{Digested: "0123", Granted: true, Steps: []step.Step{makes, launches}}
	g := newGating(model.Input{Set: &intent.Set{}, Policy: model.Policy{Gates: model.Gates{AsReviewed: true, Grant: &grant}}}, p)
	if is := g.of(&p.Steps[1]); is != free {
		t.Fatalf("alone it is in the situation %q", is)
	}
	g.apply(&p.Steps[0])
	if is := g.of(&p.Steps[1]); is != notApproved {
		t.Errorf("beside a template that is not made it is in the situation %q", is)
	}
}
