package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// HoldRefused holds the steps that end machines of pools for which AWS would refuse every new
// machine. refused contains the reasons, by pool. It does not hold steps that stop a rollout, or
// steps that somebody approved after seeing these reasons.
func (p *Plan) HoldRefused(refused map[string][]string, policy model.Policy) {
	if len(refused) == 0 || policy.Gates.Insists {
		return
	}
	grant := policy.Gates.Grant
	approved := grants(grant, p)
	for i := range p.Steps {
		s := &p.Steps[i]
		why := refused[s.Pool]
		if len(why) == 0 || !s.Disrupts() || s.Stops || !slices.Contains([]step.Hold{"", step.HeldApproval, step.HeldWindow}, s.Held) {
			continue
		}
		reason := "no new machine can start: " + strings.Join(why, "; ")
		if approved && grant.Insists[insistence(s.Owner(), reason)] {
			continue
		}
		s.Held, s.HeldReason, s.HeldEnds = step.HeldPreflight, reason, refusedEnds(policy, p.Digest())
	}
	p.holdMarks()
}

// refusedEnds describes who or what ends a preflight hold.
func refusedEnds(policy model.Policy, digest string) string {
	ends := "a commit that corrects the name, or the resource once it exists"
	switch {
	case policy.OwnTargetOnly:
		return "a manifest that corrects the name, or the resource once it exists; weir apply --insist applies it anyway"
	case digest == "":
		return ends
	}
	return ends + "; weir approve " + digest + " insists"
}

// insistence identifies a preflight hold in a grant.
func insistence(owner, reason string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + reason))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// Insists returns the preflight holds that an approval of the plan would override.
func (p *Plan) Insists() []string {
	var out []string
	for _, s := range p.Steps {
		if s.Held == step.HeldPreflight {
			out = append(out, insistence(s.Owner(), s.HeldReason))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
