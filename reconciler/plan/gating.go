package plan

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// gated computes the plan and marks the steps that gates hold. If a grant allows deletions beyond
// the limit, weir must first read other facts, so gated then computes the plan a second time.
func gated(in model.Input, compute func(model.Input) (*Plan, observed.Needs)) (*Plan, observed.Needs) {
	p, needs := compute(in)
	grant := in.Policy.Gates.Grant
	if len(p.Steps) == 0 || in.Policy.Adoption.Asked {
		return p, needs
	}
	granted := grants(grant, p)
	if granted && len(grant.Deletes) > 0 {
		in.Policy.Prune.Granted = grant.Deletes
		p, needs = compute(in)
	}
	p.Granted = granted
	g := newGating(in, p)
	for i := range p.Steps {
		g.apply(&p.Steps[i])
	}
	p.holdMarks()
	return p, needs
}

// gating decides which steps of a plan the gates hold.
type gating struct {
	model.Gates
	in   model.Input
	plan *Plan
	// approve describes how a person approves the plan, or why nobody can. approved is the text for
	// the end of such a hold.
	approve, approved string
	// unmade is the set of template versions that are not made because their steps are held.
	unmade map[step.MadeKey]bool
}

// withSecrets names the plan that people can approve instead.
const withSecrets = "a plan that is made with the target's secrets"

// newGating returns the gating of a plan, with the texts about approval that its steps show.
func newGating(in model.Input, p *Plan) *gating {
	g := &gating{
		Gates: in.Policy.Gates, in: in, plan: p, unmade: map[step.MadeKey]bool{},
		approve: "it was planned without the target's secrets and cannot be approved", approved: withSecrets,
	}
	limited := slices.ContainsFunc(p.Steps, func(s step.Step) bool { return s.Held == step.HeldPruneLimit || s.Held == step.HeldWaiting })
	if !limited && !g.AsReviewed {
		return g // no text of the plan names an approval
	}
	if digest := p.Digest(); digest != "" {
		g.approve = "weir approve " + digest
		g.approved = g.approve
		if g.Overtaken != "" && !p.Granted {
			g.approve += "; the plan has changed since the last approval, " + g.Overtaken
		}
	}
	return g
}

// situation is the state of a step relative to the gates.
type situation string

const (
	wavesMissing   situation = "its pool is in fewer waves than the configuration demands"
	explained      situation = "the planner holds it and says why"
	suspended      situation = "its target or pool is suspended"
	beyondLimit    situation = "it deletes more than the limit allows"
	limitUnproven  situation = "it deletes more than the limit, and whether a commit allows that is unknown yet"
	heldOrStopping situation = "the planner holds it, or it stops a rollout, which waits for nothing"
	notAgreed      situation = "a person agreed to another plan"
	deletes        situation = "it deletes, and weir can ask nobody"
	firstSince     situation = "it would be the first to replace machines since the pool was adopted"
	notApproved    situation = "changes need an approval, and none covers it"
	afterWave      situation = "an earlier target is not there yet"
	outsideWindow  situation = "it disrupts, and the window is closed"
	weirBusy       situation = "weir itself has something to finish first"
	newerLevel     situation = "an earlier target does not have the same image or version yet"
	free           situation = "nothing holds it"
)

// situations lists all situations except free, in order of precedence: the first one that applies
// to a step decides.
var situations = []struct {
	is   situation
	when func(g *gating, s *step.Step) bool
}{
	{wavesMissing, func(g *gating, s *step.Step) bool {
		return g.in.Policy.Unmet[s.Pool] != "" && s.Rolls() && slices.Contains([]step.Hold{"", step.HeldWave, step.HeldGate}, s.Held)
	}},
	{explained, func(_ *gating, s *step.Step) bool { return s.HeldReason != "" }},
	{suspended, func(_ *gating, s *step.Step) bool { return s.Held == step.HeldSuspended }},
	{beyondLimit, func(_ *gating, s *step.Step) bool { return s.Held == step.HeldPruneLimit }},
	{limitUnproven, func(_ *gating, s *step.Step) bool { return s.Held == step.HeldWaiting }},
	{heldOrStopping, func(_ *gating, s *step.Step) bool { return s.Held != "" || s.Stops }},
	{notAgreed, func(g *gating, s *step.Step) bool { return !lets(g.Agreed, g.plan, *s) }},
	{deletes, func(g *gating, s *step.Step) bool { return g.Deletions != "" && s.Verb == step.Delete && !g.allows(s) }},
	{firstSince, func(g *gating, s *step.Step) bool { return s.First && !g.Decided && !g.allows(s) }},
	{notApproved, func(g *gating, s *step.Step) bool {
		return g.AsReviewed && (!g.allows(s) || g.unmade[s.About().Unmade()])
	}},
	{afterWave, func(g *gating, s *step.Step) bool { return g.Wave != "" && !s.Mends() }},
	{outsideWindow, func(g *gating, s *step.Step) bool { return g.Window != "" && s.Disrupts() }},
	{weirBusy, func(g *gating, _ *step.Step) bool { return g.Waits != "" }},
	{newerLevel, func(g *gating, s *step.Step) bool { return g.plan.awaits(g.in, *s) != "" }},
}

// of returns the situation of a step.
func (g *gating) of(s *step.Step) situation {
	for _, one := range situations {
		if one.when(g, s) {
			return one.is
		}
	}
	return free
}

// allows reports whether an approval lets the step run.
func (g *gating) allows(s *step.Step) bool { return g.plan.Granted && allows(g.Grant, *s) }

// apply holds a step according to its situation, and sets the text about the end of the hold.
func (g *gating) apply(s *step.Step) {
	held := func(by step.Hold, reason, ends string) { s.Held, s.HeldReason, s.HeldEnds = by, reason, ends }
	switch g.of(s) {
	case wavesMissing:
		held(step.HeldPolicy, g.in.Policy.Unmet[s.Pool], s.HeldEnds)
	case suspended:
		s.HeldReason = g.WhySuspended(g.in.Policy, s.Pool)
		if s.Verb == step.Adopt {
			s.HeldReason += "; " + g.in.Policy.AdoptCommand("") + " adopts it anyway, which changes only tags"
		}
	case beyondLimit:
		held(s.Held, g.approve, g.approved+", or a commit that reverts the deletion")
	case limitUnproven:
		s.HeldReason = g.in.Policy.Prune.Waits + "; " + g.approve
	case notAgreed:
		held(step.HeldApproval, "it is not in the plan that was shown and confirmed: apply again", "apply again")
	case deletes:
		held(step.HeldApproval, g.Deletions, "run the command again with --yes")
	case firstSince:
		ends := undecided(g.in.Policy, g.plan.Digest())
		held(step.HeldApproval, undecidedWhy+ends, ends)
	case notApproved:
		held(step.HeldApproval, g.approveMore(), g.approved)
		if a := s.About(); a.Makes != "" {
			g.unmade[step.MadeKey{Name: s.Name, Content: a.Makes}] = true
			g.unmade[step.MadeKey{Name: s.Name}] = a.Template == (observed.TemplateRef{})
		}
	case afterWave:
		held(step.HeldWave, g.Wave, model.EarlierEnds)
	case outsideWindow:
		held(step.HeldWindow, g.Window, s.HeldEnds)
	case weirBusy:
		held(step.HeldWaiting, g.Waits, s.HeldEnds)
	case newerLevel:
		held(step.HeldWave, g.plan.awaits(g.in, *s), model.EarlierEnds)
	case explained, heldOrStopping, free: // stays as it was planned
	}
	if s.Held == step.HeldSuspended && s.HeldEnds == "" {
		s.HeldEnds = g.EndsSuspended(g.in.Policy, s.Pool)
	}
}

// approveMore is approve for steps that the approval in effect does not cover.
func (g *gating) approveMore() string {
	if g.plan.Granted && !g.Grant.Exact {
		return g.approve + fmt.Sprintf("; it is not part of the approval of %.12s", g.Grant.Digest)
	}
	return g.approve
}

// undecidedWhy explains why the first step that replaces machines of an adopted pool waits.
// undecided describes how that ends.
const undecidedWhy = "it would be the first to replace machines since the pool was adopted: "

func undecided(p model.Policy, digest string) string {
	switch {
	case p.OwnTargetOnly:
		return "apply it on a terminal, or with --yes"
	case digest == "":
		return "it was planned without the target's secrets and cannot be approved, so " + withSecrets
	}
	return "weir approve " + digest + ", or a commit that changes the pool's machines"
}

// lets reports whether the agreement lets a step of the plan run. Without an agreement, every step
// may.
func lets(a *model.Agreement, p *Plan, s step.Step) bool {
	if a == nil {
		return true
	}
	return (!a.First || p.Digest() == a.Digest) && (s.Verb != step.Delete || a.Deletes[s.Pool])
}
