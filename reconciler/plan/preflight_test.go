package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// TestStepsThatEndMachinesAreHeldWhereNoneCanStart: every other step runs, a hold of a person or
// of a rollout stays what it is, and what stops a rollout stops it.
func TestStepsThatEndMachinesAreHeldWhereNoneCanStart(t *testing.T) {
	refused := map[string][]string{"default/web": {"AWS knows no key pair nokey"}}
	roll := step.Step{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "web", Disruptive: true, Do: step.StartRefresh{Group: "web"}}
	with := func(change func(*step.Step)) step.Step {
		s := roll
		change(&s)
		return s
	}
	for name, tt := range map[string]struct {
		step step.Step
		want step.Hold
	}{
		"a rollout":            {roll, step.HeldPreflight},
		"a replacement":        {with(func(s *step.Step) { s.Verb, s.Do = step.Replace, step.CreateNodegroup{} }), step.HeldPreflight},
		"a disruptive update":  {with(func(s *step.Step) { s.Verb, s.Do = step.Update, step.UpdateGroup{Name: "web"} }), step.HeldPreflight},
		"an update":            {with(func(s *step.Step) { s.Verb, s.Disruptive, s.Do = step.Update, false, step.UpdateGroup{Name: "web"} }), ""},
		"a creation":           {with(func(s *step.Step) { s.Verb, s.Disruptive, s.Do = step.Create, false, step.CreateGroup{} }), ""},
		"another pool's":       {with(func(s *step.Step) { s.Pool = "default/api" }), ""},
		"the end of a rollout": {with(func(s *step.Step) { s.Stops, s.Do = true, step.CancelRefresh{Group: "web"} }), ""},
		"held by a window":     {with(func(s *step.Step) { s.Held = step.HeldWindow }), step.HeldPreflight},
		"held for approval":    {with(func(s *step.Step) { s.Held = step.HeldApproval }), step.HeldPreflight},
		"paused":               {with(func(s *step.Step) { s.Held = step.HeldPaused }), step.HeldPaused},
		"held by a wave":       {with(func(s *step.Step) { s.Held = step.HeldWave }), step.HeldWave},
		"stopped":              {with(func(s *step.Step) { s.Held = step.HeldStopped }), step.HeldStopped},
	} {
		p := &Plan{Target: "prod", Steps: []step.Step{tt.step}}
		p.HoldRefused(refused, model.Policy{})
		got := p.Steps[0]
		if got.Held != tt.want {
			t.Errorf("%s is held as %q, want %q", name, got.Held, tt.want)
		}
		if got.Held == step.HeldPreflight && (!strings.Contains(got.HeldReason, "key pair nokey") || !strings.Contains(got.HeldEnds, "weir approve "+p.Digest())) {
			t.Errorf("%s: %q, ended by %q", name, got.HeldReason, got.HeldEnds)
		}
	}
}

// TestAnApprovalInsistsOnWhatItShowed: of the plan with the hold, for its reason.
func TestAnApprovalInsistsOnWhatItShowed(t *testing.T) {
	held := func(why string, policy model.Policy) step.Step {
		p := &Plan{Target: "prod", Steps: []step.Step{{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "web", Disruptive: true, Do: step.StartRefresh{Group: "web"}}}}
		p.HoldRefused(map[string][]string{"default/web": {why}}, policy)
		return p.Steps[0]
	}
	shown := &Plan{Target: "prod", Steps: []step.Step{held("no key pair ops", model.Policy{})}}
	insists := map[string]bool{}
	for _, k := range shown.Insists() {
		insists[k] = true
	}
	if len(insists) != 1 {
		t.Fatalf("the plan insists on %v", shown.Insists())
	}
	digest := shown.Digest()
	for name, tt := range map[string]struct {
		why    string
		policy model.Policy
		want   step.Hold
	}{
		"as it was shown":      {"no key pair ops", model.Policy{Gates: model.Gates{Grant: &model.Grant{Digest: digest, Exact: true, Insists: insists}}}, ""},
		"once it has begun":    {"no key pair ops", model.Policy{Gates: model.Gates{Grant: &model.Grant{Digest: "earlier", Insists: insists}}}, ""},
		"of another plan":      {"no key pair ops", model.Policy{Gates: model.Gates{Grant: &model.Grant{Digest: "other", Exact: true, Insists: insists}}}, step.HeldPreflight},
		"another reason":       {"no key pair dev", model.Policy{Gates: model.Gates{Grant: &model.Grant{Digest: digest, Exact: true, Insists: insists}}}, step.HeldPreflight},
		"before it was shown":  {"no key pair ops", model.Policy{Gates: model.Gates{Grant: &model.Grant{Digest: digest, Exact: true}}}, step.HeldPreflight},
		"by a command's flag":  {"no key pair ops", model.Policy{Gates: model.Gates{Insists: true}}, ""},
		"with a PATH":          {"no key pair ops", model.Policy{OwnTargetOnly: true}, step.HeldPreflight},
		"planned without keys": {"no key pair ops", model.Policy{}, step.HeldPreflight},
	} {
		got := held(tt.why, tt.policy)
		if got.Held != tt.want {
			t.Errorf("%s: held as %q, want %q", name, got.Held, tt.want)
		}
		if tt.policy.OwnTargetOnly && !strings.Contains(got.HeldEnds, "weir apply --insist") {
			t.Errorf("%s: ended by %q", name, got.HeldEnds)
		}
	}
	if slices.Contains(shown.Insists(), "") {
		t.Error("an empty key")
	}
}
